// Starts the agent once, delivers one line over HTTP and ends the agent, to fill a folder with Node's compile cache. The image build runs
// it, because a pod with a read-only file system cannot keep a cache.
// Usage: node compiled-start.ts FOLDER COMMAND…, where COMMAND starts the agent. It needs only Node.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const [compiled = '', command = '', ...args] = process.argv.slice(2)
const folder = mkdtempSync(join(tmpdir(), 'compiled-start-'))
let delivered = 0
const destination = createServer((request, response) => {
  request.resume().on('end', () => {
    delivered++
    response.end()
  })
}).listen(0, '127.0.0.1')
try {
  await once(destination, 'listening')
  const config = {
    data_dir: folder,
    sources: { in: { type: 'stdin' } },
    transforms: {
      parse: {
        type: 'remap',
        inputs: ['in'],
        source: '. = merge(., object!(parse_json!(string!(.message))))\ndel(.message)',
      },
    },
    sinks: {
      out: {
        type: 'http',
        inputs: ['parse'],
        uri: `http://127.0.0.1:${(destination.address() as AddressInfo).port}`,
        healthcheck: { enabled: false },
        compression: 'zstd',
        encoding: { codec: 'json' },
      },
    },
  }
  const file = join(folder, 'agent.json')
  writeFileSync(file, JSON.stringify(config))
  const agent = spawn(command, [...args, '-q', '--config', file], {
    stdio: ['pipe', 'inherit', 'inherit'],
    env: { ...process.env, NODE_COMPILE_CACHE: compiled },
  })
  agent.stdin.end('{"level":"info","text":"drop"}\n')
  const [code] = await once(agent, 'exit')
  if (code !== 0 || delivered === 0) throw new Error(`The agent delivered nothing and exited with ${code}.`)
} finally {
  destination.close()
  rmSync(folder, { recursive: true })
}
