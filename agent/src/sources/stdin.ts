// Standard input as a source: it reads until the input ends, which also ends the agent, for shell pipelines and trials. It
// stops reading while the pipeline applies back-pressure.

import { hostname } from 'node:os'
import { compileDecoder, decodedTypes, defaultFraming, eventBatches } from '../codecs/decoding/decoder.ts'
import { framingProblems } from '../codecs/framing/encode.ts'
import { defineSource, type SourceContext } from '../component.ts'
import { Finalizer } from '../event/finalizer.ts'
import { annotate, Notes, reportUndecoded } from '../intake/annotate.ts'
import { type DecodingOptions, decoding, type FramingOptions, framing } from '../schema/groups.ts'
import { bytes, fieldPath, optional } from '../schema/options.ts'

const protocol = { protocol: 'none' }

export const stdin = defineSource({
  type: 'stdin',
  summary: 'Reads events from standard input; the agent stops when the input ends.',
  outputs: ['log', 'metric'],
  emits: ({ decoding: chosen }) => decodedTypes(chosen),
  reaches: 'agent',
  options: {
    max_length: bytes(
      'Longest line or frame in bytes, if `framing` sets no limit of its own. Longer ones are skipped.',
      {
        default: 102_400,
        minimum: 1,
      },
    ),
    host_key: optional(fieldPath('Field for the name of the host. Empty: none. If not given, `log_schema.host_key`.')),
    decoding: decoding(),
    framing: framing(),
  },
  resources: () => ['stdin'],
  check: (options) => framingProblems(options.framing),

  build(options, context) {
    const frames = limitedFraming(options.framing, options.decoding, options.max_length)
    const decoder = compileDecoder(options.decoding, frames, context.globals, {
      stream: true,
      maxLength: options.max_length,
    })
    const schema = context.globals.logSchema
    const notes = new Notes('stdin', schema, [[options.host_key ?? schema.hostKey, hostname()]])
    const input = process.stdin

    return {
      async run() {
        const stop = () => input.destroy()
        context.stopping.addEventListener('abort', stop)
        try {
          if (context.stopping.aborted) return
          for await (const chunk of input) {
            const piece = typeof chunk === 'string' ? Buffer.from(chunk) : (chunk as Buffer)
            context.events.receivedBytes(piece.length, protocol)
            await handOn(decoder.push(piece), notes, context)
          }
        } catch (error) {
          // A stream destroyed during a read reports an error.
          if (!context.stopping.aborted) {
            const message = 'Could not read standard input.'
            context.events.error({ type: 'reader_failed', stage: 'receiving', message, fields: { error } })
          }
        } finally {
          context.stopping.removeEventListener('abort', stop)
          await handOn(decoder.end(), notes, context)
        }
      },
    }
  },
})

async function handOn(
  decoded: ReturnType<ReturnType<typeof compileDecoder>['push']>,
  notes: Notes,
  context: SourceContext,
): Promise<void> {
  reportUndecoded(decoded, context.events)
  if (decoded.events.length === 0) return
  annotate(decoded.events, notes)
  for (const batch of eventBatches(decoded.events, new Finalizer())) await context.output.send(batch)
}

/** The given framing, or that of the codec, with this limit if it has none. */
function limitedFraming(given: FramingOptions, codec: DecodingOptions, maxLength: number): FramingOptions {
  const method = given?.method ?? defaultFraming(codec.codec)
  const base = given ?? {
    method,
    character_delimited: undefined,
    newline_delimited: undefined,
    octet_counting: undefined,
    length_delimited: undefined,
  }
  switch (method) {
    case 'newline_delimited':
      return { ...base, newline_delimited: { max_length: base.newline_delimited?.max_length ?? maxLength } }
    case 'character_delimited': {
      const { delimiter = 0, max_length = maxLength } = base.character_delimited ?? {}
      return { ...base, character_delimited: { delimiter, max_length } }
    }
    case 'octet_counting':
      return { ...base, octet_counting: { max_length: base.octet_counting?.max_length ?? maxLength } }
    default:
      return base
  }
}
