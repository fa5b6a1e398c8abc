import { createServer } from 'node:net'

/** Ports that this process has given out. A port is free again only for other processes: the test may not listen at it yet. */
const given = new Set<number>()

/**
 * A port of loopback where nothing listens, for a server that starts later or never. It lies below the ports that the kernel gives
 * to clients and to servers that ask for any port. Otherwise a server of another test could get it meanwhile, and a client that
 * tries it again and again could be connected to itself.
 *
 * @throws {Error} if no port from 12000 to 30000 is free.
 */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < 1000; attempt++) {
    const port = 12_000 + Math.floor(Math.random() * 18_000)
    if (given.has(port)) continue
    given.add(port)
    if (await isFree(port)) return port
  }
  throw new Error('No port from 12000 to 30000 is free.')
}

function isFree(port: number): Promise<boolean> {
  const server = createServer()
  return new Promise((done) => {
    server.once('error', () => done(false))
    server.listen(port, '127.0.0.1', () => server.close(() => done(true)))
  })
}
