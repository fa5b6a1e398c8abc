// Packs the operator and the command for their image, as agent/.rolldown.ts packs the agent: with the agent's modules that they import,
// and the agent itself for `penstock run`. `node_modules` only contains the packages that modules of the agent load on demand.

import { defineConfig } from 'rolldown'
import { lazy, packing } from '../agent/.rolldown.ts'

export default defineConfig({
  ...packing,
  // The sources of the agent, not the possibly outdated result of an earlier build.
  resolve: { conditionNames: ['source', 'node', 'import'] },
  input: {
    main: 'src/main.ts',
    agent: 'src/cli/agent.ts',
    worker: 'src/compile/worker.ts',
    'leader-worker': 'src/kube/leader-worker.ts',
    'remote-worker': '../agent/src/remap/remote-worker.ts',
    'network-worker': '../agent/src/remap/network-worker.ts',
  },
  // The operator always needs prom-client, and the library for kubeconfigs needs undici.
  external: (name) => lazy.includes(name) && name !== 'prom-client' && name !== 'undici',
})
