// `generate`: prints a starter configuration, its JSON Schema, or an existing configuration in another syntax.

import { readFileSync, writeFileSync } from 'node:fs'
import { stringify as stringifyToml } from 'smol-toml'
import { stringify as stringifyYaml } from 'yaml'
import { exitCodes } from '../command-line/exit-codes.ts'
import { type Flags, flagHelp, parseFlags } from '../command-line/flags.ts'
import { helpText } from '../command-line/help.ts'
import type { AnyDeclaration, ComponentKind } from '../component.ts'
import { exampleOptions } from '../config/example.ts'
import { defaultDataDir, globalOptions } from '../config/globals.ts'
import { positionAt } from '../config/place.ts'
import { type Format, formatOf, knownFormat, parseText } from '../config/syntax.ts'
import { testOptions } from '../config/unit-test-shape.ts'
import { fileReason, PenstockError } from '../errors.ts'
import { components, findComponent } from '../registry.ts'
import { configurationSchema } from '../schema/json-schema.ts'
import { closest } from '../schema/problems.ts'
import { describedComponents } from './pages.ts'

export const flags = {
  fragment: { type: 'boolean', help: 'Omit the top-level settings.' },
  file: { type: 'string', value: 'PATH', help: 'New file to write to, instead of standard output.' },
  schema: { type: 'boolean', help: 'Print the JSON Schema of a configuration, for editors.' },
  from: { type: 'string', value: 'PATH', help: 'Configuration to print in another syntax. Comments are not kept.' },
  format: {
    type: 'string',
    oneOf: ['yaml', 'json', 'toml'],
    help: 'Syntax of the output (that of --file, else yaml).',
  },
  help: { type: 'boolean', short: 'h', help: 'Print this text.' },
} as const satisfies Flags

const usage = `Usage: penstock-agent generate SOURCES/TRANSFORMS/SINKS [FLAGS]
       penstock-agent generate --schema
       penstock-agent generate --from PATH [--format FORMAT]

Prints a starter configuration, the JSON Schema of configurations, or a configuration in another syntax. Separate types by commas; put an id and a colon before a type to name the component: demo_logs/parse:remap,filter/console

`

export async function run(argv: readonly string[]): Promise<number> {
  const { flags: given, words } = parseFlags(argv, flags)
  if (given.help) {
    process.stdout.write(helpText(`${usage}${flagHelp(flags)}\n`))
    return exitCodes.ok
  }
  const format = (given.format ?? (given.file === undefined ? 'yaml' : (knownFormat(given.file) ?? 'yaml'))) as Format
  const wanted = Number(given.schema) + Number(given.from !== undefined) + words.length
  if (wanted !== 1) {
    throw new PenstockError('PEN_USAGE', 'Give one of: types, such as stdin/remap/console; --schema; --from PATH.')
  }
  if (given.schema) {
    const schema = configurationSchema(describedComponents(), globalOptions, testOptions)
    write(`${JSON.stringify(schema, undefined, 2)}\n`, given.file)
  } else if (given.from !== undefined) {
    write(written(readConfig(given.from), format), given.file)
  } else {
    write(written(skeletonConfig(words[0] as string, given.fragment), format), given.file)
  }
  return exitCodes.ok
}

function write(text: string, file: string | undefined): void {
  if (file === undefined) {
    process.stdout.write(text)
    return
  }
  try {
    writeFileSync(file, text, { flag: 'wx' })
  } catch (error) {
    throw new PenstockError('PEN_CANNOT_CREATE', `"${file}" cannot be created: ${fileReason(error)}.`, { cause: error })
  }
}

function written(config: object, format: Format): string {
  if (format === 'json') return `${JSON.stringify(config, undefined, 2)}\n`
  if (format === 'toml') return `${stringifyToml(config).trimEnd()}\n`
  return stringifyYaml(config, { lineWidth: 0 })
}

/** Reads a configuration with its placeholders, which are only replaced on loading. */
function readConfig(file: string): object {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    throw new PenstockError('PEN_CONFIG_UNREADABLE', `"${file}" cannot be read: ${fileReason(error)}.`, {
      cause: error,
    })
  }
  const parsed = parseText(text, formatOf(file))
  if (!parsed.ok) {
    const lines = parsed.problems.map(({ offset, message }) => {
      const { line, column } = positionAt(text, offset)
      return `${file}:${line}:${column}: ${message}`
    })
    throw new PenstockError('PEN_CONFIG_INVALID', lines.join('\n'))
  }
  return (parsed.document.value ?? {}) as object
}

// --- Skeletons ---

function skeletonConfig(expression: string, fragment: boolean): object {
  const parts = expression.split('/')
  if (parts.length > 3) {
    throw new PenstockError('PEN_USAGE', `"${expression}" has more than three parts: SOURCES/TRANSFORMS/SINKS.`)
  }
  const kinds = ['source', 'transform', 'sink'] as const
  const [sources, transforms, sinks] = kinds.map((kind, index) => named(kind, parts[index] ?? ''))
  const config: Record<string, object> = {}
  const add = (kind: ComponentKind, all: Named[] | undefined, inputsOf: (index: number) => readonly string[]) => {
    if (all === undefined || all.length === 0) return
    config[`${kind}s`] = Object.fromEntries(
      all.map(({ id, declaration }, index) => {
        const inputs = kind === 'source' ? {} : { inputs: inputsOf(index) }
        return [id, { type: declaration.type, ...inputs, ...exampleOptions(declaration) }]
      }),
    )
  }
  const ids = (all: readonly Named[] | undefined) => (all ?? []).map((each) => each.id)
  const chain = ids(transforms)
  add('source', sources, () => [])
  add('transform', transforms, (index) => (index === 0 ? ids(sources) : [chain[index - 1] as string]))
  add('sink', sinks, () => (chain.length === 0 ? ids(sources) : [chain.at(-1) as string]))
  // Without stored positions, a data directory that must be created first would only be an obstacle.
  const all = [...(sources ?? []), ...(transforms ?? []), ...(sinks ?? [])]
  const keepsData = all.some(({ declaration }) => Object.hasOwn(declaration.options, 'data_dir'))
  return fragment || !keepsData ? config : { data_dir: defaultDataDir, ...config }
}

interface Named {
  readonly id: string
  readonly declaration: AnyDeclaration
}

function named(kind: ComponentKind, part: string): Named[] {
  const words = part.split(',').filter((word) => word.trim() !== '')
  return words.map((word, index) => {
    const [first = '', second] = word.split(':').map((text) => text.trim())
    const type = second ?? first
    const declaration = findComponent(kind, type)
    if (declaration === undefined) {
      const near = closest(
        type,
        components.filter((component) => component.kind === kind).map((component) => component.type),
      )
      const other = components.find((component) => component.type === type)
      const hint =
        other !== undefined
          ? `It is a ${other.kind}; for no transforms, leave the part empty: SOURCES//SINKS.`
          : near === undefined
            ? 'penstock-agent list prints all types.'
            : `Did you mean "${near}"?`
      throw new PenstockError('PEN_USAGE', `There is no ${kind} of type "${type}". ${hint}`)
    }
    return { id: second === undefined ? `${kind}${index}` : first, declaration }
  })
}
