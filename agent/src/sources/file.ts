// File source: one event for each line of the matching files, starting at the last position. Lines stay bytes until a
// transform or sink needs their fields.

import { resolve } from 'node:path'
import { defineSource, type OptionProblem } from '../component.ts'
import { parsePath } from '../event/path.ts'
import {
  bool,
  bytes,
  fieldPath,
  group,
  list,
  oneOf,
  optional,
  path,
  seconds,
  tagged,
  text,
  uint,
} from '../schema/options.ts'
import { Confinement } from '../tailing/confinement.ts'
import type { DiscoveryRules } from '../tailing/discovery.ts'
import { compileGlob, type Glob, maxAlternatives } from '../tailing/glob.ts'
import { compileMultiline, multiline, multilineProblems } from '../tailing/multiline.ts'
import { compileDelimiter } from '../tailing/slab.ts'
import { defaultReadBytes, type TailOptions } from '../tailing/tailed-file.ts'
import { FileSourceReader } from './file/reader.ts'
import type { Layout } from './file/shape.ts'

export const file = defineSource({
  type: 'file',
  summary: 'Reads lines from files as they grow.',
  description:
    'The agent identifies a file by a checksum of its first lines, so no lines are lost when files are renamed or compressed. It stores the positions of delivered lines in `data_dir`.',
  outputs: ['log'],
  acknowledges: true,
  runsOn: 'node',
  options: {
    include: list(
      path('A path or glob pattern.', { use: 'glob', within: 'sidecar volume' }),
      'Files to read: paths with `*`, `**`, `?`, `[a-z]` and `{a,b}`.',
      {
        minItems: 1,
        examples: [['/var/log/**/*.log']],
      },
    ),
    exclude: list(path('A path or glob pattern.', { use: 'glob', within: 'sidecar volume' }), 'Files to exclude.', {
      default: [],
    }),
    read_from: oneOf(['beginning', 'end'], 'Where the first start begins to read files that already exist.', {
      default: 'beginning',
    }),
    ignore_older_secs: optional(
      seconds('Files not written for this many seconds count as read.', {
        zero: 'lines written before the source found their file are not read',
        aliases: ['ignore_older'],
      }),
    ),
    ignore_checkpoints: bool('Whether to ignore the stored positions at start.', { default: false }),
    fingerprint: tagged(
      'strategy',
      {
        checksum: {
          lines: uint('Number of lines used for the checksum. A file with fewer lines is not read.', {
            default: 1,
            minimum: 1,
            limit: 'fingerprintLines',
          }),
        },
        device_and_inode: {},
      },
      'Identity of files: `checksum` of the first lines, or `device_and_inode`.',
      { default: { strategy: 'checksum', lines: 1 } },
    ),
    max_line_bytes: bytes('Longest line in bytes; longer ones are discarded.', {
      default: 102400,
      minimum: 1,
      limit: 'lineBytes',
    }),
    max_read_bytes: optional(
      bytes(
        'Bytes read from one file before the next file has its turn; a longer line is still read as a whole. If not given, the limit is 2048 and is checked after each chunk of 64 KiB. Small limits cost time at each turn.',
        { minimum: 1, limit: 'readBytes' },
      ),
    ),
    glob_minimum_cooldown_ms: uint(
      'Milliseconds between two scans of the folders. New files are found sooner if the system reports them.',
      { default: 1000, minimum: 1 },
    ),
    line_delimiter: text('The line delimiter.', { default: '\n' }),
    multiline: multiline(),
    oldest_first: bool(
      'Whether older files are read to their end before newer ones. Otherwise files take turns, each for `max_read_bytes`.',
      { default: false },
    ),
    file_key: fieldPath('Field for the path of the file. Empty: none.', { default: 'file' }),
    host_key: optional(fieldPath('Field for the name of the host; the global host key if not given. Empty: none.')),
    offset_key: optional(fieldPath('Field for the position of the line in its file. Empty: none.')),
    encoding: optional(
      group(
        { charset: text('Name of the character set, such as `utf-16le` or `windows-1252`.') },
        'Encoding of the files; UTF-8 if not given.',
      ),
    ),
    rotate_wait_secs: optional(
      seconds('Seconds after which a removed or renamed file is closed, even if it was not read to its end.', {
        zero: 'at once',
      }),
    ),
    remove_after_secs: optional(
      seconds('Seconds after which a completely delivered file is removed. Files stay if not given.', {
        zero: 'at once',
        aliases: ['remove_after'],
      }),
    ),
    read_to_end: bool('Whether to stop when all files have been read to their end.', { default: false }),
    data_dir: optional(path('Directory for positions; the global `data_dir` if not given.', { use: 'folder' })),
  },

  check(options) {
    const problems: OptionProblem[] = []
    for (const name of ['include', 'exclude'] as const) {
      options[name].forEach((pattern, index) => {
        if (compileGlob(pattern) === undefined) {
          problems.push({
            path: `${name}.${index}`,
            message: `The pattern "${pattern}" has an unclosed bracket or brace, or too many braces: the limits are 64 braces and ${maxAlternatives} alternatives.`,
          })
        }
      })
    }
    if (options.line_delimiter === '') {
      problems.push({ path: 'line_delimiter', message: 'The delimiter must have at least one character.' })
    }
    if (options.encoding !== undefined && decoderOf(options.encoding.charset) === undefined) {
      problems.push({
        path: 'encoding.charset',
        message: `Unknown character set "${options.encoding.charset}".`,
        help: 'Use a name of the Encoding Standard, such as `utf-16le`, `shift_jis` or `windows-1252`.',
      })
    }
    return [...problems, ...multilineProblems(options.multiline)]
  },

  build(options, context) {
    const { logSchema } = context.globals
    const charset = options.encoding?.charset
    const decoder = charset === undefined ? undefined : decoderOf(charset)
    const layout: Layout = {
      messageKey: logSchema.messageKey,
      timestampKey: logSchema.timestampKey,
      offsetPath: pathOf(options.offset_key ?? ''),
      decode: decoder === undefined || decoder.encoding === 'utf-8' ? undefined : (part) => decoder.decode(part),
    }
    const confinement = context.confinedTo === undefined ? undefined : new Confinement(context.confinedTo)
    const tail: TailOptions = {
      rules: rulesOf(options, confinement),
      fingerprint:
        options.fingerprint.strategy === 'checksum'
          ? { strategy: 'checksum', lines: options.fingerprint.lines, maxLineBytes: options.max_line_bytes }
          : { strategy: 'device_and_inode' },
      delimiter: delimiterOf(options.line_delimiter, decoder?.encoding),
      maxLineBytes: options.max_line_bytes,
      maxReadBytes: options.max_read_bytes ?? defaultReadBytes,
      isReadBoundExact: options.max_read_bytes !== undefined,
      oldestFirst: options.oldest_first ? 'all' : undefined,
      readFrom: options.read_from,
      ignoreOlderMs: milliseconds(options.ignore_older_secs),
      ignoreCheckpoints: options.ignore_checkpoints,
      rotateWaitMs: milliseconds(options.rotate_wait_secs),
      sweepMs: options.glob_minimum_cooldown_ms,
      stopAtEnd: options.read_to_end,
      removeAfterMs: milliseconds(options.remove_after_secs),
      lastLine: true,
      dataDir: options.data_dir ?? context.globals.dataDir,
      componentId: context.id,
      confinement,
      fileTag: false,
    }
    const keys = { host: pathOf(options.host_key ?? logSchema.hostKey), file: pathOf(options.file_key) }
    const rule = options.multiline === undefined ? undefined : compileMultiline(options.multiline)
    return new FileSourceReader({ tail, layout, keys, rule }, context)
  },
})

function rulesOf(
  {
    include: included,
    exclude: excluded,
  }: { readonly include: readonly string[]; readonly exclude: readonly string[] },
  confinement: Confinement | undefined,
): DiscoveryRules {
  const include = globs(included, false)
  const exclude = globs(excluded, true)
  return {
    roots: [...new Set(include.map((glob) => glob.base))],
    enter: (directory) =>
      include.some((glob) => glob.leadsThrough(directory)) && confinement?.leadsInside(directory) !== false,
    accept: (found) => include.some((glob) => glob.matches(found)) && !exclude.some((glob) => glob.matches(found)),
  }
}

function globs(patterns: readonly string[], anywhere: boolean): Glob[] {
  const compiled: Glob[] = []
  for (const pattern of patterns) {
    // `**/…` among the exclusions means files anywhere.
    const glob = compileGlob(anywhere && pattern.startsWith('**/') ? pattern : resolve(pattern))
    if (glob !== undefined) compiled.push(glob) // `check` has reported invalid patterns
  }
  return compiled
}

function pathOf(text: string): readonly (string | number)[] | undefined {
  return text === '' ? undefined : parsePath(text)?.segments
}

function milliseconds(secs: number | undefined): number | undefined {
  return secs === undefined ? undefined : secs * 1000
}

function decoderOf(charset: string): TextDecoder | undefined {
  try {
    return new TextDecoder(charset)
  } catch {
    return undefined
  }
}

/** The bytes of the delimiter. Every character set except UTF-16 encodes it like ASCII. */
function delimiterOf(text: string, encoding: string | undefined) {
  if (encoding === 'utf-16le') return compileDelimiter(Buffer.from(text, 'utf16le'), 2)
  if (encoding === 'utf-16be') return compileDelimiter(Buffer.from(text, 'utf16le').swap16(), 2)
  return compileDelimiter(Buffer.from(text, 'utf8'))
}
