// Packs the agent for its image: the modules of a running agent in a few files, in one folder. Some five hundred modules, each
// with records of its own, would cost 6 MB and a third of the time of a start. The modules of `dist` stay what the npm package holds
// and the operator imports.

import { defineConfig, type Plugin, type RolldownOptions } from 'rolldown'

/** Those that are loaded where they are needed, if ever. */
export const lazy = ['@aws-sdk/client-sqs', 'amqplib', 'prom-client', 'undici']

/** One letter beyond Latin-1 doubles the size of a source in memory, where it stays; escaped it means the same. */
const narrow: Plugin = {
  name: 'narrow',
  generateBundle(_, files) {
    for (const file of Object.values(files)) {
      if (file.type !== 'chunk') continue
      file.code = file.code.replace(/[^\0-\xff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    }
  },
}

/** What the operator's pack has in common with this one. */
export const packing = {
  platform: 'node',
  plugins: [narrow],
  output: {
    dir: 'packed',
    cleanDir: true,
    format: 'esm',
    // Read only by a Node that is started with --enable-source-maps.
    sourcemap: true,
    entryFileNames: '[name].js',
    chunkFileNames: '[name]-[hash].js',
    comments: false,
  },
} as const satisfies RolldownOptions

export default defineConfig({
  ...packing,
  input: {
    main: 'src/main.ts',
    'remote-worker': 'src/remap/remote-worker.ts',
    'network-worker': 'src/remap/network-worker.ts',
  },
  external: lazy,
})
