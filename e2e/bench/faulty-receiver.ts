// A test loads this module into the processes of a benchmark (`--import`). The receiver then handles one body wrongly, as
// PENSTOCK_BENCH_FAULT says. With `lose`, it acknowledges the body without reading it. With `repeat`, it reads the body and
// requests it again.

import http, { type RequestListener } from 'node:http'
import { syncBuiltinESMExports } from 'node:module'

/** The first bodies contain lines that were written before the start. */
const faultyPost = 3

const fault = process.env['PENSTOCK_BENCH_FAULT']

if (process.argv[1]?.endsWith('receiver.ts') === true && fault !== undefined) {
  const { createServer } = http
  let posts = 0
  http.createServer = ((listener: RequestListener) =>
    createServer((request, response) => {
      if (request.method !== 'POST' || ++posts !== faultyPost) {
        listener(request, response)
      } else if (fault === 'lose') {
        request.resume().on('end', () => response.writeHead(204).end())
      } else {
        const answer = response.writeHead.bind(response) as (status: number) => typeof response
        response.writeHead = () => answer(503)
        listener(request, response)
      }
    })) as typeof createServer
  syncBuiltinESMExports()
}
