// File source: one event for each line of the files that match, from where reading ended before.
// Lines stay bytes until a transform or sink asks for them.

import { hostname } from 'node:os'
import { resolve } from 'node:path'
import { defineSource, type OptionProblem, type OriginTags } from '../component.ts'
import { logBatch } from '../event/batch.ts'
import { LogEvent } from '../event/log.ts'
import { parsePath, setPath } from '../event/path.ts'
import { logSize } from '../event/size.ts'
import { Timestamp } from '../event/timestamp.ts'
import type { Bytes, Value, ValueObject } from '../event/value.ts'
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
import { compileGlob, type Glob, maxAlternatives } from '../tailing/glob.ts'
import { LineBatch, type LineShape, Lines } from '../tailing/lines.ts'
import { compileMultiline, MultilineAggregator, multiline, multilineProblems } from '../tailing/multiline.ts'
import { compileDelimiter, type Slab } from '../tailing/slab.ts'
import { Tailer } from '../tailing/tail.ts'
import { defaultReadBytes, type TailedFile } from '../tailing/tailed-file.ts'

interface FileState {
  /** One object for all batches, by which their counters are found. */
  readonly origin: OriginTags
  readonly shape: FileShape
  readonly groups: MultilineAggregator<Value[]> | undefined
}

export const file = defineSource({
  type: 'file',
  summary: 'Reads lines from files as they grow.',
  description:
    'A checksum of its first lines identifies a file, so renaming and compressing files loses nothing. Positions of delivered lines are kept in `data_dir`.',
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
    exclude: list(path('A path or glob pattern.', { use: 'glob', within: 'sidecar volume' }), 'Files to leave out.', {
      default: [],
    }),
    read_from: oneOf(['beginning', 'end'], 'Where reading starts in files that are there at the first start.', {
      default: 'beginning',
    }),
    ignore_older_secs: optional(
      seconds('Files that were not written to for so many seconds are taken as read.', {
        zero: 'lines that were written before the source found their file are not read',
        aliases: ['ignore_older'],
      }),
    ),
    ignore_checkpoints: bool('Whether to forget how far files were read before the start.', { default: false }),
    fingerprint: tagged(
      'strategy',
      {
        checksum: {
          lines: uint('Number of first lines. A file with fewer lines is not read.', {
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
        'Bytes read from one file before the next has its turn; a longer line is still read as a whole. If not given, the limit is 2048, and is looked at after each chunk of 64 KiB: small limits cost time for each turn.',
        { minimum: 1, limit: 'readBytes' },
      ),
    ),
    glob_minimum_cooldown_ms: uint(
      'Milliseconds between two walks of the folders. New files are found sooner if the system reports them.',
      { default: 1000, minimum: 1 },
    ),
    line_delimiter: text('The end of a line.', { default: '\n' }),
    multiline: multiline(),
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
      seconds(
        'Seconds after which a file that was removed or renamed is closed, although it was not read to its end.',
        { zero: 'at once' },
      ),
    ),
    remove_after_secs: optional(
      seconds('Seconds after which a file that was delivered to its end is removed. Files stay if not given.', {
        zero: 'at once',
        aliases: ['remove_after'],
      }),
    ),
    read_to_end: bool('Whether to end when all files have been read to their end.', { default: false }),
    data_dir: optional(path('Directory for positions; the global `data_dir` if not given.', { use: 'folder' })),
  },

  check(options) {
    const problems: OptionProblem[] = []
    for (const name of ['include', 'exclude'] as const) {
      options[name].forEach((pattern, index) => {
        if (compileGlob(pattern) === undefined) {
          problems.push({
            path: `${name}.${index}`,
            message: `The pattern "${pattern}" has a bracket or brace that is not closed, or too many braces: it may have 64, and stand for ${maxAlternatives} patterns.`,
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
        message: `The character set "${options.encoding.charset}" is not known.`,
        help: 'Names are those of the Encoding Standard, such as `utf-16le`, `shift_jis` or `windows-1252`.',
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
    const hostPath = pathOf(options.host_key ?? logSchema.hostKey)
    const filePath = pathOf(options.file_key)
    const host = hostname()
    const rule = options.multiline === undefined ? undefined : compileMultiline(options.multiline)

    const include = globs(options.include, false)
    const exclude = globs(options.exclude, true)
    const confinement = context.confinedTo === undefined ? undefined : new Confinement(context.confinedTo)
    let emitted: LogEvent[] = []

    const sendGroups = (tailed: TailedFile<FileState>, position: number): Promise<void> | undefined => {
      const safe = tailed.state.groups?.pendingFrom ?? position
      if (emitted.length === 0) {
        tailed.progress.skip(safe)
        return undefined
      }
      const events = emitted
      emitted = []
      return context.output.send(logBatch(events, tailed.progress.handOn(safe)), tailed.state.origin)
    }

    const waiting = new Set<TailedFile<FileState>>()
    const tailer = new Tailer<FileState>(
      {
        rules: {
          roots: [...new Set(include.map((glob) => glob.base))],
          enter: (directory) =>
            include.some((glob) => glob.leadsThrough(directory)) && confinement?.leadsInside(directory) !== false,
          accept: (found) =>
            include.some((glob) => glob.matches(found)) && !exclude.some((glob) => glob.matches(found)),
        },
        fingerprint:
          options.fingerprint.strategy === 'checksum'
            ? { strategy: 'checksum', lines: options.fingerprint.lines, maxLineBytes: options.max_line_bytes }
            : { strategy: 'device_and_inode' },
        delimiter: delimiterOf(options.line_delimiter, decoder?.encoding),
        maxLineBytes: options.max_line_bytes,
        maxReadBytes: options.max_read_bytes ?? defaultReadBytes,
        isReadBoundExact: options.max_read_bytes !== undefined,
        oldestFirst: false,
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
      },
      {
        opened(tailed) {
          const constants: ValueObject = {}
          if (filePath !== undefined) setPath(constants, filePath, tailed.path)
          if (hostPath !== undefined) setPath(constants, hostPath, host)
          setPath(constants, [logSchema.sourceTypeKey], 'file')
          const shape = new FileShape(constants, layout)
          return {
            origin: { file: tailed.path },
            shape,
            groups:
              rule === undefined
                ? undefined
                : new MultilineAggregator<Value[]>(rule, (text, [offset, time]) => {
                    emitted.push(shape.make(text, offset as number, time as Timestamp))
                  }),
          }
        },
        lines(tailed, slab) {
          const { shape, groups, origin } = tailed.state
          if (groups === undefined) {
            const lines = new Lines(slab, shape, tailer.pool)
            const finalizer = tailed.progress.handOn(slab.end, () => lines.ended())
            const full = context.output.send(new LineBatch(lines, 0, slab.count, finalizer), origin)
            lines.settle()
            return full
          }
          for (let line = 0; line < slab.count; line++) {
            const position = slab.base + (slab.starts[line] as number)
            groups.add(shape.text(slab, line), position, [position, slab.time], slab.time.ms)
          }
          if (groups.pendingFrom !== undefined) waiting.add(tailed)
          return sendGroups(tailed, slab.end)
        },
        closed(tailed) {
          waiting.delete(tailed)
          if (tailed.state.groups?.pendingFrom === undefined) return undefined
          tailed.state.groups.flush()
          return sendGroups(tailed, tailed.offset)
        },
      },
      context,
    )

    return {
      async run() {
        const timer =
          rule === undefined
            ? undefined
            : setInterval(
                () => {
                  const now = Date.now()
                  for (const tailed of waiting) {
                    tailed.state.groups?.expire(now)
                    if (tailed.state.groups?.pendingFrom !== undefined) continue
                    waiting.delete(tailed)
                    // A full buffer holds the next read, not this last group.
                    void sendGroups(tailed, tailed.offset)
                  }
                },
                Math.min(1000, Math.max(20, rule.timeoutMs / 2)),
              )
        try {
          await tailer.run()
        } finally {
          clearInterval(timer)
        }
      },
    }
  },
})

interface Layout {
  readonly messageKey: string
  readonly timestampKey: string
  readonly offsetPath: readonly (string | number)[] | undefined
  readonly decode: ((bytes: Buffer) => string) | undefined
}

/** What a line of one file becomes. */
class FileShape implements LineShape {
  readonly overhead: number
  readonly #constants: ValueObject
  readonly #layout: Layout
  /** The fields are those of the defaults: events are made by a literal, which is three times as fast. */
  readonly #usual: boolean

  constructor(constants: ValueObject, layout: Layout) {
    this.#constants = constants
    this.#layout = layout
    this.#usual =
      layout.offsetPath === undefined &&
      layout.messageKey === 'message' &&
      layout.timestampKey === 'timestamp' &&
      Object.keys(constants).sort().join() === 'file,host,source_type'
    this.overhead = logSize(this.make('', 0, new Timestamp(0, 0)).fields)
  }

  event(slab: Slab, line: number): LogEvent {
    return this.make(this.text(slab, line), slab.base + (slab.starts[line] as number), slab.time)
  }

  text(slab: Slab, line: number): string | Bytes {
    const start = slab.starts[line] as number
    const end = slab.ends[line] as number
    const { decode } = this.#layout
    return decode === undefined ? slab.text(start, end) : decode(slab.buffer.subarray(start, end))
  }

  make(message: string | Bytes, offset: number, timestamp: Timestamp): LogEvent {
    const constants = this.#constants
    if (this.#usual) {
      return new LogEvent({
        file: constants['file'],
        host: constants['host'],
        message,
        source_type: constants['source_type'],
        timestamp,
      })
    }
    const { messageKey, timestampKey, offsetPath } = this.#layout
    const fields: ValueObject = { ...constants, [messageKey]: message, [timestampKey]: timestamp }
    if (offsetPath !== undefined) setPath(fields, offsetPath, offset)
    return new LogEvent(fields)
  }
}

function globs(patterns: readonly string[], anywhere: boolean): Glob[] {
  const compiled: Glob[] = []
  for (const pattern of patterns) {
    // `**/…` among the exclusions means files anywhere.
    const glob = compileGlob(anywhere && pattern.startsWith('**/') ? pattern : resolve(pattern))
    if (glob !== undefined) compiled.push(glob) // what is not valid was reported by `check`
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

/** The bytes of the delimiter: every character set but UTF-16 writes it as ASCII does. */
function delimiterOf(text: string, encoding: string | undefined) {
  if (encoding === 'utf-16le') return compileDelimiter(Buffer.from(text, 'utf16le'), 2)
  if (encoding === 'utf-16be') return compileDelimiter(Buffer.from(text, 'utf16le').swap16(), 2)
  return compileDelimiter(Buffer.from(text, 'utf8'))
}
