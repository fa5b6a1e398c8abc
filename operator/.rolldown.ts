// Packs the operator and the command for their image, as agent/.rolldown.ts packs the agent: with all that they need of its modules,
// and the agent itself for `penstock run`. In `node_modules` stays only what modules of the agent load late, if ever.

import { defineConfig } from 'rolldown'
import { lazy, packing } from '../agent/.rolldown.ts'

export default defineConfig({
  ...packing,
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
