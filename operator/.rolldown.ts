// Packs the operator and the command for their image, as agent/.rolldown.ts packs the agent: with all that they need of its modules,
// and the agent itself for `penstock run`. In `node_modules` stays only what modules of the agent load late, if ever.

import http from 'node:http'
import { defineConfig, type Plugin } from 'rolldown'
import { lazy, packing } from '../agent/.rolldown.ts'

/**
 * An import of `node:http` reads all that the module has, so that Node loads what is behind `WebSocket`: 16 MB, and as much time as
 * Node takes to start twice. Asked for like this, it does not.
 */
const plainHttp: Plugin = {
  name: 'plain-http',
  resolveId: (name, _, { kind }) => (/^(node:)?http$/.test(name) && kind !== 'require-call' ? '\0http' : undefined),
  load(id) {
    if (id !== '\0http') return
    const late = ['WebSocket', 'CloseEvent', 'MessageEvent']
    const names = Object.keys(http).filter((name) => !late.includes(name))
    return [
      `const http = process.getBuiltinModule('node:http')`,
      'export default http',
      ...names.map((name) => `export const ${name} = http.${name}`),
    ].join('\n')
  },
}

export default defineConfig({
  ...packing,
  plugins: [...packing.plugins, plainHttp],
  // The modules of the agent as they are, not what was built of them at some time.
  resolve: { conditionNames: ['source', 'node', 'import'] },
  input: {
    main: 'src/main.ts',
    agent: 'src/cli/agent.ts',
    worker: 'src/compile/worker.ts',
    'leader-worker': 'src/kube/leader-worker.ts',
    'remote-worker': '../agent/src/remap/remote-worker.ts',
    'network-worker': '../agent/src/remap/network-worker.ts',
  },
  // prom-client is always needed here, and the library of kubeconfigs needs undici.
  external: (name) => lazy.includes(name) && name !== 'prom-client' && name !== 'undici',
})
