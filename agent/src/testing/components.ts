// Declarations for tests of configuration, reference and schema. They replace the registry, so that these tests do not depend on real
// components.

import { defineSink, defineSource, defineTransform, erased, registryOf } from '../component.ts'
import { batch, compression, decoding, encoding, httpAuth, proxy, request, tls } from '../schema/groups.ts'
import {
  bool,
  fieldPath,
  list,
  map,
  oneOf,
  optional,
  program,
  secret,
  template,
  text,
  uint,
  url,
} from '../schema/options.ts'

const never = () => {
  throw new Error('Declarations for tests are not built.')
}

const logs = defineSource({
  type: 'log_input',
  summary: 'Reads log events.',
  aliases: ['old_log_input'],
  outputs: ['log'],
  acknowledges: true,
  options: {
    address: optional(url('Where events come from.')),
    port: optional(uint('Port to listen on.', { zero: 'any free port' })),
    old_port: optional(uint('Port to listen on.', { deprecated: 'Use `port`.' })),
    decoding: decoding(),
    proxy: proxy(),
  },
  resources: ({ port }) => (port === undefined ? [] : [`tcp 0.0.0.0:${port}`]),
  build: never,
})

const metrics = defineSource({
  type: 'metric_input',
  summary: 'Reads metric events.',
  outputs: ['metric'],
  options: {},
  build: never,
})

const change = defineTransform({
  type: 'change',
  summary: 'Changes events.',
  accepts: ['log', 'metric'],
  options: {
    source: program('The program.', 'program'),
    reroute_dropped: bool('Whether dropped events leave by the output `dropped`.', { default: false }),
  },
  ports: ({ reroute_dropped }) => (reroute_dropped ? ['dropped'] : []),
  check({ source }) {
    const lines = source.split('\n')
    const line = lines.findIndex((text) => text.includes('wrong'))
    if (line < 0) return []
    const column = (lines[line] as string).indexOf('wrong') + 1
    return [
      {
        path: 'source',
        message: 'the program does not compile',
        position: { line: line + 1, column },
        rendered: `${lines[line]}\n${' '.repeat(column - 1)}^^^^^ not a function`,
      },
    ]
  },
  build: never,
})

const output = defineSink({
  type: 'log_output',
  summary: 'Delivers log events.',
  aliases: ['old_log_output'],
  accepts: ['log'],
  options: {
    endpoint: url('Base address.', { examples: ['http://localhost:3100'] }),
    labels: map(template('Value of the label.'), 'Labels of a stream.', { default: {} }),
    key: fieldPath('Field of the key.', { default: 'key' }),
    api_key: optional(secret('Key of the service.')),
    mode: oneOf(['bulk', 'data_stream'], 'How events are written.', { default: 'bulk' }),
    fields: optional(list(text('A field.'), 'Fields to send.')),
    compression: compression(['none', 'gzip'], 'none'),
    encoding: encoding(['json', 'text', 'csv']),
    auth: httpAuth(),
    batch: batch({ max_bytes: 1_000_000, timeout_secs: 1 }),
    request: request({ concurrency: 'none' }),
    tls: tls(),
  },
  build: never,
})

const metricOutput = defineSink({
  type: 'metric_output',
  summary: 'Delivers metric events.',
  accepts: ['metric'],
  options: {},
  build: never,
})

export const components = registryOf([
  erased(logs),
  erased(metrics),
  erased(change),
  erased(output),
  erased(metricOutput),
])
