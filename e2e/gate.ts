// An HTTP proxy for a server without authentication: it forwards requests with the expected `Authorization` header, responds with 401 to all
// others, and records the headers.

import type { IncomingHttpHeaders } from 'node:http'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Gate extends AsyncDisposable {
  readonly url: string
  readonly port: number
  readonly seen: { readonly path: string; readonly status: number; readonly headers: IncomingHttpHeaders }[]
}

/** Starts a proxy for the host and port of a URL. `authorization` is the complete value of the header. */
export async function gate(target: string, authorization: string): Promise<Gate> {
  const { hostname, port } = new URL(target)
  const seen: { path: string; status: number; headers: IncomingHttpHeaders }[] = []
  const server = createServer((incoming, answer) => {
    const note = (status: number) => seen.push({ path: incoming.url ?? '', status, headers: incoming.headers })
    if (incoming.headers.authorization !== authorization) {
      incoming.resume()
      incoming.on('end', () => {
        note(401)
        answer.writeHead(401, { 'www-authenticate': 'Basic realm="test"' }).end()
      })
      return
    }
    const { authorization: _, ...headers } = incoming.headers
    const forward = request({ hostname, port, method: incoming.method, path: incoming.url, headers }, (response) => {
      note(response.statusCode ?? 0)
      answer.writeHead(response.statusCode ?? 502, response.headers)
      response.pipe(answer)
    })
    forward.on('error', () => answer.destroy())
    incoming.pipe(forward)
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const address = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${address.port}`,
    port: address.port,
    seen,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((done) => server.close(done))
    },
  }
}
