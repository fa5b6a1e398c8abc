// The exporters `debug` and `logging`, which print records, or only count them.

import { plain } from './forms.ts'
import type { Mapping, SinkPart } from './mapping.ts'

/**
 * @param isBasic whether the exporter only counts records, for a verbosity or log level
 * @param more an older option for the same
 */
const printer = (
  name: string,
  isBasic: (verbosity: string, level: string) => boolean,
  more: Readonly<Record<string, string>> = {},
): Mapping<SinkPart> => ({
  name,
  becomes: '`console` with lines of JSON, or `blackhole` with counts if the exporter prints only counts',
  options: { verbosity: 'the type of the sink', ...more },
  itself: {
    sampling_initial: 'all events are printed',
    sampling_thereafter: 'all events are printed',
    use_internal_logger: 'events go to standard output',
    output_paths: 'events go to standard output',
    sending_queue: 'standard output needs no queue',
  },
  build: (part, context) => {
    if (!isBasic(part.text('verbosity') ?? '', part.text('loglevel') ?? '')) {
      return { component: { type: 'console', config: { encoding: { codec: 'json' } } }, steps: plain }
    }
    context.replaced(
      part.place(),
      `${part.id}: verbosity`,
      'the exporter logs only the number of records, without `verbosity: detailed`; the sink logs it every 10 seconds',
      'Use `penstock tap` to see events, or set `verbosity: detailed` and convert again.',
    )
    return { component: { type: 'blackhole', config: { print_interval_secs: 10 } }, steps: [] }
  },
})

/** `debug` prints records from `normal`; its predecessor `logging` counted them at that verbosity. */
export const debug = printer('debug', (verbosity) => !/^(?:normal|detailed)$/i.test(verbosity))
export const logging = printer(
  'logging',
  (verbosity, level) => !/^detailed$/i.test(verbosity) && !/^debug$/i.test(level),
  { loglevel: 'the type of the sink, by its older name' },
)
