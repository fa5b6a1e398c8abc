import { createServer } from 'node:net'

/** Ports that this process has returned. It does not return them again, because the test may not listen on them yet. */
const given = new Set<number>()

/**
 * A loopback port on which no server listens, for a server that starts later or never. It is below the kernel's ephemeral ports. Otherwise
 * a server of another test could get the port meanwhile, and a client that retries could connect to itself.
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
