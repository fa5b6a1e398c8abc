// Packs the agent for its image: the modules of a running agent in a few files, in one folder. Some five hundred modules, each
// with records of its own, would cost 6 MB and a third of the time of a start. The modules of `dist` stay what the npm package holds
// and the operator imports.

import { isBuiltin } from 'node:module'
import { defineConfig, type Plugin, type RolldownOptions } from 'rolldown'

/** Those that are loaded where they are needed, if ever. */
export const lazy = ['@aws-sdk/client-sqs', 'amqplib', 'prom-client', 'undici']

/** One letter beyond Latin-1 doubles the size of a source in memory, where it stays; escaped it means the same. */
const narrow: Plugin = {
  name: 'narrow',
  generateBundle(_, files) {
    for (const file of Object.values(files)) {
      if (file.type !== 'chunk') continue
      const map = files[`${file.fileName}.map`]
      if (map?.type === 'asset') {
        const fields = JSON.parse(String(map.source)) as { mappings: string }
        map.source = JSON.stringify({ ...fields, mappings: moved(fields.mappings, file.code.split('\n')) })
      }
      file.code = file.code.replace(wide, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    }
  },
}

/**
 * Built-in modules by `process.getBuiltinModule`. For an import, Node reads every property of the module, and some load what nobody
 * asked for: `node:util` the threads and the comparison of texts, `node:fs` the streams, `node:http` all behind `WebSocket`.
 */
const builtins: Plugin = {
  name: 'builtins',
  // Each import stays on its line, so that the map stays true.
  renderChunk: (code) => ({ code: code.replace(builtinImport, fromBuiltin), map: null }),
}

const builtinImport = /^import (?:([\w$]+)(?:, )?)?(?:\* as ([\w$]+)|\{([^}]*)\})? ?from "([\w:/]+)";$/gm

function fromBuiltin(line: string, whole?: string, namespace?: string, names?: string, module = ''): string {
  if (!isBuiltin(module)) return line
  const name = whole ?? namespace
  const got = `process.getBuiltinModule("${module}")`
  const members = names === undefined ? undefined : `{${names.replaceAll(' as ', ': ')}}`
  if (name === undefined) return `const ${members} = ${got};`
  return `const ${name} = ${got}${members === undefined ? '' : `, ${members} = ${name}`};`
}

const wide = /[^\0-\xff]/g
const escapeLength = '\\u0000'.length

/** Mappings of code in which each letter that is too wide becomes an escape: what stands behind it on its line moves to the right. */
function moved(mappings: string, lines: readonly string[]): string {
  const each = mappings.split(';').map((mapping, index) => {
    const letters = [...(lines[index] ?? '').matchAll(wide)].map((match) => match.index)
    if (letters.length === 0 || mapping === '') return mapping
    let column = 0
    let before = 0 // by which the segment before has moved
    let passed = 0
    const segments = mapping.split(',').map((segment) => {
      const { value, length } = readVlq(segment)
      column += value
      while (passed < letters.length && (letters[passed] as number) < column) passed++
      const by = passed * (escapeLength - 1)
      const text = writeVlq(value + by - before) + segment.slice(length)
      before = by
      return text
    })
    return segments.join(',')
  })
  return each.join(';')
}

const digits = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'

/** The first number of a segment: groups of five bits, the lowest first, and the sign as the lowest bit. */
function readVlq(segment: string): { value: number; length: number } {
  let bits = 0
  let length = 0
  for (let digit = 32; (digit & 32) !== 0; length++) {
    digit = digits.indexOf(segment[length] as string)
    bits |= (digit & 31) << (length * 5)
  }
  return { value: (bits & 1) === 1 ? -(bits >>> 1) : bits >>> 1, length }
}

function writeVlq(value: number): string {
  let bits = value < 0 ? (-value << 1) | 1 : value << 1
  let text = ''
  do {
    const rest = bits >>> 5
    text += digits[(bits & 31) | (rest > 0 ? 32 : 0)]
    bits = rest
  } while (bits > 0)
  return text
}

/** Options that the operator's pack shares with this one. */
export const packing = {
  platform: 'node',
  plugins: [builtins, narrow],
  output: {
    dir: 'packed',
    cleanDir: true,
    format: 'esm',
    // Read only by a Node that is started with --enable-source-maps.
    sourcemap: true,
    entryFileNames: '[name].js',
    chunkFileNames: '[name]-[hash].js',
    comments: false,
    // Names of functions and classes stay: error messages and stacks show them.
    minify: { compress: { keepNames: { function: true, class: true } }, mangle: { keepNames: true } },
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
