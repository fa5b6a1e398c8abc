// The sub-commands except `completion`, which describes them. Each is loaded on demand, so that a running agent only holds the
// code it needs.

import type { Flags } from '../command-line/flags.ts'

export interface Command {
  readonly load: () => Promise<CommandModule>
  readonly help: string
  readonly alias?: true
}

interface CommandModule {
  run(argv: readonly string[]): Promise<number>
  /** The flags, under either name; an alias has none. */
  readonly flags?: Flags
  readonly flagTable?: Flags
}

export const commands: Readonly<Record<string, Command>> = {
  run: { load: () => import('./run.ts'), help: 'Run the agent (the default command).' },
  validate: { load: () => import('./validate.ts'), help: 'Check a configuration without running it.' },
  test: { load: () => import('./test.ts'), help: 'Run the unit tests of a configuration.' },
  graph: { load: () => import('./graph.ts'), help: 'Print the topology of a configuration as a picture.' },
  list: { load: () => import('./list.ts'), help: 'List the types of components.' },
  explain: {
    load: () => import('./explain.ts'),
    help: 'Describe a component, function, metric or error code.',
  },
  remap: { load: () => import('./remap.ts'), help: 'Run a remap program on events, or interactively.' },
  vrl: { load: () => import('./remap.ts'), help: 'Same as remap.', alias: true },
  tap: { load: () => import('./tap.ts'), help: 'Show live events of a running agent.' },
  top: { load: () => import('./top.ts'), help: 'Show live figures of a running agent.' },
  buffer: { load: () => import('./buffer.ts'), help: 'Inspect a disk buffer: buffer inspect PATH.' },
  generate: { load: () => import('./generate.ts'), help: 'Print a starter configuration, or the JSON Schema.' },
  'generate-schema': { load: () => import('./generate-schema.ts'), help: 'Same as generate --schema.', alias: true },
  'convert-config': { load: () => import('./convert-config.ts'), help: 'Same as generate --from.', alias: true },
}
