// Packs the agent for its image: all modules of a running agent in a few files of one folder. Five hundred separate modules would use 6 MB
// more memory and a third of the time of a start. The npm package contains the separate modules of `dist`, which the operator imports.

import { isBuiltin } from 'node:module'
import { defineConfig, type Plugin, type RolldownOptions } from 'rolldown'

/** Packages that are only loaded when they are needed. */
export const lazy = ['@aws-sdk/client-sqs', 'amqplib', 'prom-client', 'undici']

/**
 * Replaces characters beyond Latin-1 by escapes with the same meaning. A single one doubles the memory of its source text, which V8
 * keeps.
 */
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
 * Loads built-in modules with `process.getBuiltinModule`. For an import, Node reads every property of the module, and some properties
 * load unused code: in `node:util` the threads and the comparison of texts, in `node:fs` the streams, in `node:http` the client of
 * `WebSocket`.
 */
const builtins: Plugin = {
  name: 'builtins',
  // Each import keeps its line, so that the source map remains correct.
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

/** Mappings for code in which escapes have replaced wide characters, which moves the rest of the line to the right. */
function moved(mappings: string, lines: readonly string[]): string {
  const each = mappings.split(';').map((mapping, index) => {
    const letters = [...(lines[index] ?? '').matchAll(wide)].map((match) => match.index)
    if (letters.length === 0 || mapping === '') return mapping
    let column = 0
    let before = 0 // how far the previous segment has moved
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

/** The first number of a segment: groups of five bits, the lowest group first, with the sign in the lowest bit. */
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

/** Options for packing the agent and the operator. */
export const packing = {
  platform: 'node',
  plugins: [builtins, narrow],
  output: {
    dir: 'packed',
    cleanDir: true,
    format: 'esm',
    // Node reads the maps only with --enable-source-maps.
    sourcemap: true,
    entryFileNames: '[name].js',
    chunkFileNames: '[name]-[hash].js',
    comments: false,
    // Keep the names of functions and classes, because error messages and stacks show them.
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
