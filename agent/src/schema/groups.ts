// Groups of options that many components share. A component passes its own defaults.

import {
  address,
  bool,
  bytes,
  either,
  fieldPath,
  float,
  group,
  hostPart,
  intOr,
  list,
  map,
  type Option,
  oneOf,
  optional,
  path,
  seconds,
  secret,
  tagged,
  text,
  uint,
  url,
  webPorts,
} from './options.ts'

/** Default of limits that are effectively unlimited. */
const unlimited = 9.223372036854776e18

const acknowledgementMembers = {
  enabled: optional(
    bool('Whether connected sources wait for this sink before they acknowledge events at their own origin.'),
  ),
}

/** `acknowledgements` of a sink: a boolean or a table. */
export const acknowledgements = () =>
  optional(
    either(
      bool('Shorthand for `enabled`.'),
      group(acknowledgementMembers, 'End-to-end acknowledgement.'),
      'Whether sources wait for this sink. Overrides the global setting.',
    ),
  )

export const healthcheck = () =>
  either(
    bool('Shorthand for `enabled`.'),
    group(
      {
        enabled: bool('Whether the agent checks the destination when it starts.', { default: true }),
        uri: optional(url('Address to check instead of the default one.')),
        timeout: seconds('Seconds after which the check fails.', { default: 10 }),
      },
      'Health check of the destination when the agent starts.',
    ),
    'Health check of the destination when the agent starts. The agent logs a failure; with `--require-healthy`, it stops.',
    { default: {} as never },
  )

/** `buffer` of a sink. The check of the sink's envelope requires `max_size` with `type: disk`. */
export const buffer = () =>
  group(
    {
      type: oneOf(
        ['memory', 'disk'],
        'Where the buffer stores events: `memory` is fast but lost in a crash, `disk` survives a crash except for the last 500 ms.',
        { default: 'memory' },
      ),
      max_events: optional(
        uint('Maximum number of events in the buffer, 500 by default. Only for type `memory`.', {
          minimum: 1,
          limit: 'bufferEvents',
        }),
      ),
      max_size: optional(
        bytes('Maximum size on disk in bytes, at least 268435488. Required for type `disk`, and only allowed there.', {
          minimum: 0, // the check of sinks rejects smaller values
          limit: 'bufferBytes',
        }),
      ),
      when_full: oneOf(
        ['block', 'drop_newest'],
        'Behavior when the buffer is full: `block` makes the source wait, `drop_newest` discards the new event.',
        { default: 'block' },
      ),
    },
    'Buffer for events that wait for the sink.',
  )

const proxyAddress = { ports: webPorts, bare: 'http' } as const

export const proxy = () =>
  group(
    {
      enabled: optional(bool('Whether to use proxies. The default is the global setting, or else true.')),
      http: optional(address('Proxy for plain HTTP, a URL.', proxyAddress, { examples: ['http://proxy:3128'] })),
      https: optional(address('Proxy for HTTPS, a URL.', proxyAddress, { examples: ['http://proxy:3128'] })),
      no_proxy: optional(
        list(
          text('A host.'),
          'Hosts to connect to directly: `name`, `.domain` with its subdomains, an IP address, a CIDR block, `host:port` or `*`.',
        ),
      ),
    },
    'Proxies. Overrides the global setting, which overrides the environment.',
  )

export interface BatchDefaults {
  max_bytes?: number
  max_events?: number
  timeout_secs: number
  /** Whether `timeout_secs` must be a whole number. */
  wholeSeconds?: boolean
}

const batchAge = 'Age in seconds at which the sink sends a batch that is not full.'

/** `batch` of a sink, with this sink's defaults. An option without a default is unlimited. */
export const batch = (defaults: BatchDefaults) =>
  group(
    {
      max_bytes: withDefault(
        bytes('Maximum bytes in a batch, before encoding and compression.', { minimum: 1, limit: 'batchBytes' }),
        defaults.max_bytes,
      ),
      max_events: withDefault(
        uint('Maximum events in a batch.', { minimum: 1, limit: 'batchEvents' }),
        defaults.max_events,
      ),
      timeout_secs:
        defaults.wholeSeconds === true
          ? uint(batchAge, { default: defaults.timeout_secs, minimum: 1 })
          : seconds(batchAge, { default: defaults.timeout_secs, exclusiveMinimum: 0 }),
    },
    'When the sink sends a batch.',
  )

function withDefault(option: Option<number>, value: number | undefined): Option<number | undefined> {
  return value === undefined ? optional(option) : { ...option, default: value }
}

export interface RequestDefaults {
  concurrency?: number | 'adaptive' | 'none'
  retry_attempts?: number
  ewma_alpha?: number
  rtt_deviation_scale?: number
}

/** Only for sinks over HTTP. */
const authGrace = {
  auth_grace_secs: uint(
    'Seconds for which the sink retries a request that the destination rejects with status 401 or 403, which leaves time to rotate a credential. The time starts at the first rejection. After it, the sink discards the events of a rejected request at once, until no rejection has occurred for the same time.',
    { default: 300, zero: 'discard the events at once' },
  ),
}

const requestMembers = (defaults: RequestDefaults) => ({
  concurrency: intOr(
    ['adaptive', 'none'],
    'Maximum number of concurrent requests: a number, `none` for one, or `adaptive` to let the agent determine it.',
    {
      limit: 'concurrency',
      default: defaults.concurrency ?? 'none',
    },
  ),
  rate_limit_duration_secs: uint('Length of the time window for `rate_limit_num`, in seconds.', {
    default: 1,
    minimum: 1,
  }),
  rate_limit_num: uint('Maximum number of requests in a time window.', { default: unlimited, minimum: 1 }),
  retry_attempts: uint('Maximum number of retries of a request.', {
    zero: 'never retry',
    default: defaults.retry_attempts ?? unlimited,
  }),
  retry_initial_backoff_secs: uint(
    'Seconds to wait before the first retry. Later waits follow the Fibonacci sequence.',
    {
      default: 1,
      minimum: 1,
    },
  ),
  retry_max_duration_secs: uint('Maximum number of seconds between two retries.', { default: 3600, minimum: 1 }),
  retry_jitter_mode: oneOf(
    ['full', 'none'],
    'Whether to extend each wait by a random time of up to half of it, so that agents do not all retry at the same moment: `full` extends it, `none` does not.',
    {
      default: 'full',
    },
  ),
  timeout_secs: uint(
    'Seconds after which the sink abandons a request and retries it. Must not be below the timeout of the destination, or requests may be duplicated.',
    {
      default: 60,
      minimum: 1,
    },
  ),
  adaptive_concurrency: group(
    {
      initial_concurrency: uint('Initial limit.', { default: 1, minimum: 1, limit: 'concurrency' }),
      max_concurrency_limit: uint('Maximum limit.', { default: 200, minimum: 1, limit: 'concurrency' }),
      decrease_ratio: float('Factor by which the agent multiplies the limit to reduce it.', {
        default: 0.9,
        exclusiveMinimum: 0,
        exclusiveMaximum: 1,
      }),
      ewma_alpha: float('Weight of a new round-trip time in the moving average.', {
        default: defaults.ewma_alpha ?? 0.4,
        exclusiveMinimum: 0,
        exclusiveMaximum: 1,
      }),
      rtt_deviation_scale: float('Number of deviations by which a round-trip time may exceed the average.', {
        zero: 'any round-trip time above the average reduces the limit',
        default: defaults.rtt_deviation_scale ?? 2.5,
        minimum: 0,
      }),
    },
    'How `concurrency: adaptive` determines its limit.',
  ),
})

/**
 * `request` of a sink: the middleware around each call.
 * @param headers the description of `headers`
 */
export const request = (defaults: RequestDefaults = {}, headers = 'Headers to add to every request.') =>
  group(
    {
      ...requestMembers(defaults),
      ...authGrace,
      headers: map(text('Value of the header.'), headers, { default: {}, names: 'header' }),
    },
    'Limits, retries and timeouts of requests.',
  )

/** `request` of a sink whose requests have no headers. */
export const requestWithoutHeaders = (defaults: RequestDefaults = {}) =>
  group(requestMembers(defaults), 'Limits, retries and timeouts of requests.')

const pem = { use: 'read', inline: 'pem', absolute: true } as const

/** `tls` of a client. Every path may also be the PEM text itself. */
export const tls = (defaults: { enabled?: boolean } = {}) =>
  group(
    {
      enabled: withBool('Whether TLS is required. If true, the agent rejects addresses without TLS.', defaults.enabled),
      alpn_protocols: optional(list(text('A protocol.'), 'Protocols to offer, in order of preference.')),
      ca_file: optional(
        path('Additional certificate authority: a DER or PEM file, or PEM text.', pem, { aliases: ['ca_path'] }),
      ),
      crt_file: optional(
        path('Certificate to present: a DER, PEM or PKCS#12 file, or PEM text.', pem, { aliases: ['crt_path'] }),
      ),
      key_file: optional(
        path('Private key of the certificate: a DER or PEM file, or PEM text.', pem, { aliases: ['key_path'] }),
      ),
      key_pass: optional(secret('Passphrase of the key.')),
      server_name: optional(text('Server name to request and verify instead of the host of the address.')),
      verify_certificate: bool('Whether the peer must present a valid certificate from a trusted issuer.', {
        default: true,
      }),
      verify_hostname: bool('Whether the certificate must match the host name.', { default: true }),
    },
    'TLS settings of connections. Use absolute paths: the agent resolves relative paths in its working directory.',
  )

function withBool(description: string, value: boolean | undefined): Option<boolean | undefined> {
  return value === undefined ? optional(bool(description)) : bool(description, { default: value })
}

const codecNames = ['avro', 'csv', 'gelf', 'json', 'logfmt', 'native', 'native_json', 'raw_message', 'text'] as const

/** The codecs of a sink whose output is for people. Only such a sink offers `pretty`. */
export const screenCodecs = [...codecNames, 'pretty'] as const
export type EncodingCodec = (typeof screenCodecs)[number]

/** Codecs that write text, for destinations that accept an event as text inside a document. */
export const textCodecs: readonly EncodingCodec[] = codecNames.filter((codec) => codec !== 'avro' && codec !== 'native')

const timestampFormats = ['rfc3339', 'unix', 'unix_float', 'unix_ms', 'unix_ns', 'unix_us'] as const
type TimestampFormat = (typeof timestampFormats)[number]

const transformerMembers = (extensions: readonly TimestampFormat[]) => ({
  only_fields: optional(list(fieldPath('A field.'), 'Fields to keep. The sink omits all others.')),
  except_fields: optional(list(fieldPath('A field.'), 'Fields to omit.')),
  timestamp_format: oneOf(timestampFormats, 'Format of timestamps.', { default: 'rfc3339', extensions }),
})

/** Formats of timestamps that only the search engine must accept. */
const extendedFormats = timestampFormats.slice(2)

/** A malformed `encoding` is reported by one generic message, with the details as its help (requirements, Errors). */
const reportedAsOne = { 'x-encoding': true }

/**
 * `encoding` of a sink without a choice of codecs: which fields it sends, and the format of timestamps.
 * @param extensions formats of timestamps beyond those of the requirements
 */
export const transformer = (
  description = 'Which fields the sink sends, and the format of timestamps.',
  extensions: readonly TimestampFormat[] = extendedFormats,
) => ({ ...group(transformerMembers(extensions), description), ...reportedAsOne })

/** The reason why a sink that sends text rejects a binary codec. */
const notText = 'writes binary data, but this destination stores events as text and could not return the data unchanged'

/** The reason why a sink for programs rejects a codec for people. */
const forPeople = 'writes short lines for people and omits fields; use `json`, `logfmt` or `text`'

function refusedCodecs(codecs: readonly EncodingCodec[]): Record<string, string> {
  const refused = screenCodecs.filter((codec) => !codecs.includes(codec) && !textCodecs.includes(codec))
  return Object.fromEntries(
    refused.map((codec) => [codec, `codec \`${codec}\` ${codec === 'pretty' ? forPeople : notText}`]),
  )
}

/** `encoding` of a sink with a choice of codecs. */
export const encoding = (codecs: readonly EncodingCodec[] = codecNames) => ({
  ...group(
    {
      codec: { ...oneOf(codecs, 'How the sink encodes an event.'), 'x-refused': refusedCodecs(codecs) },
      avro: optional(group({ schema: text('The Avro schema, as JSON.') }, 'Options of codec `avro`.')),
      csv: optional(
        group(
          {
            fields: list(fieldPath('A field.'), 'The columns, in order.', { minItems: 1 }),
            delimiter: text('Character between columns.', { default: ',' }),
            double_quote: bool('Whether to double quotes inside a quoted value. If false, the sink escapes them.', {
              default: true,
            }),
            escape: text('Character that escapes a quote if `double_quote` is false.', { default: '"' }),
            quote: text('Character that encloses quoted values.', { default: '"' }),
            quote_style: oneOf(['always', 'necessary', 'never', 'non_numeric'], 'Which values to quote.', {
              default: 'necessary',
            }),
            capacity: bytes('Accepted for compatibility, without effect.', {
              default: 8192,
              zero: 'no effect either',
            }),
          },
          'Options of codec `csv`.',
        ),
      ),
      json: optional(
        group(
          { pretty: bool('Whether to write indented JSON on several lines.', { default: false }) },
          'Options of codec `json`.',
        ),
      ),
      metric_tag_values: {
        ...oneOf(
          ['single', 'full'],
          'Whether to write only the last value of a metric tag, or an array of all its values. Only for codecs `json` and `text`.',
          {
            default: 'single',
          },
        ),
        'x-only-with': { codec: ['json', 'text'] },
      },
      ...transformerMembers(extendedFormats),
    },
    'How the sink encodes events.',
  ),
  ...reportedAsOne,
})

/** The parsed `encoding` option, with any set of codecs. */
export type EncodingOptions = ReturnType<typeof encoding> extends Option<infer T> ? T : never

export type TransformerOptions = ReturnType<typeof transformer> extends Option<infer T> ? T : never

export const framingMethods = [
  'bytes',
  'character_delimited',
  'length_delimited',
  'newline_delimited',
  'octet_counting',
] as const
export type FramingMethod = (typeof framingMethods)[number]

const delimiter = () =>
  either(
    uint('Value of the byte.', { maximum: 255, zero: 'the NUL byte' }),
    text('The character.'),
    'Delimiter between frames.',
  )

/** Default maximum length of a frame of method `length_delimited`. */
export const defaultFrameLength = 8 * 1024 * 1024

/** `framing` of a source. If omitted entirely, a message is one frame, and the codec decides the framing of a stream. */
export const framing = () =>
  optional({
    ...group(
      {
        method: oneOf(framingMethods, 'How to separate frames.', { default: 'bytes' }),
        character_delimited: optional(
          group(
            {
              delimiter: delimiter(),
              max_length: optional(
                bytes('Maximum length of a frame, without the delimiter. Set a limit if the data is not trusted.', {
                  limit: 'frameBytes',
                }),
              ),
            },
            'Options of method `character_delimited`.',
          ),
        ),
        newline_delimited: optional(
          group(
            {
              max_length: optional(
                bytes('Maximum length of a frame, without the newline. Set a limit if the data is not trusted.', {
                  limit: 'frameBytes',
                }),
              ),
            },
            'Options of method `newline_delimited`.',
          ),
        ),
        octet_counting: optional(
          group(
            { max_length: optional(bytes('Maximum length of a frame.', { limit: 'frameBytes' })) },
            'Options of method `octet_counting`.',
          ),
        ),
        length_delimited: optional(
          group(
            {
              max_frame_length: bytes('Maximum length of a frame.', {
                default: defaultFrameLength,
                limit: 'frameBytes',
              }),
            },
            'Options of method `length_delimited`.',
          ),
        ),
      },
      'How to separate frames. By default, a message is one frame, and the codec decides the framing of a stream.',
    ),
    default: undefined, // an empty table differs from no table
  })

/** `framing` of a sink, which has no limits on the length of frames. If omitted, the codec's default applies. */
export const outgoingFraming = () =>
  optional(
    group(
      {
        method: oneOf(framingMethods, 'How to separate frames.'),
        character_delimited: optional(group({ delimiter: delimiter() }, 'Options of method `character_delimited`.')),
      },
      'How to separate frames in a stream of bytes.',
    ),
  )

export type OutgoingFramingOptions = ReturnType<typeof outgoingFraming> extends Option<infer T> ? T : never

export type FramingOptions = ReturnType<typeof framing> extends Option<infer T> ? T : never

export const decodingCodecs = ['bytes', 'gelf', 'json', 'native', 'native_json', 'syslog'] as const
export type DecodingCodec = (typeof decodingCodecs)[number]

const lossy = (codec: string) =>
  optional(
    group(
      {
        lossy: bool('Whether to replace invalid UTF-8 by U+FFFD. If false, the source discards the frame.', {
          default: true,
        }),
      },
      `Options of codec \`${codec}\`.`,
    ),
  )

/** `decoding` of a source. */
export const decoding = () =>
  group(
    {
      codec: oneOf(decodingCodecs, 'How the source decodes a frame.', { default: 'bytes' }),
      json: lossy('json'),
      gelf: lossy('gelf'),
      native_json: lossy('native_json'),
      syslog: lossy('syslog'),
    },
    'How the source decodes bytes into events.',
  )

export type DecodingOptions = ReturnType<typeof decoding> extends Option<infer T> ? T : never

/** `auth` of an HTTP client: `basic` or `bearer`. */
export const httpAuth = () =>
  optional(
    tagged(
      'strategy',
      {
        basic: { user: text('User name.'), password: secret('Password of the user.') },
        bearer: { token: secret('Token, sent unchanged.') },
      },
      'How requests authenticate.',
    ),
  )

/** Members of `auth` with `strategy: aws`. The members that are set determine the origin of the credentials. */
export const awsAuthMembers = {
  access_key_id: optional(secret('Access key. Requires `secret_access_key`.', { means: { explicit: 'keys' } })),
  secret_access_key: optional(secret('Secret access key.', { means: { explicit: 'keys' } })),
  session_token: optional(secret('Session token for temporary keys.')),
  assume_role: optional(text('ARN of a role to assume.')),
  external_id: optional(text('External ID that the owner of the role requires.')),
  session_name: optional(text('Name of the role session.')),
  credentials_file: optional(path('File with credentials.', { use: 'read' })),
  profile: optional(text('Profile in the credentials file.')),
  region: optional(address('Region for requests to the security token service.', hostPart)),
  load_timeout_secs: optional(uint('Timeout for loading credentials, in seconds.')),
  imds: group(
    {
      max_attempts: uint('Maximum number of attempts to reach the instance metadata service.', {
        default: 4,
        minimum: 1,
      }),
      connect_timeout_seconds: uint('Timeout for connecting to the service, in seconds.', { default: 1 }),
      read_timeout_seconds: uint('Timeout for reading from the service, in seconds.', { default: 1 }),
    },
    'Settings of the instance metadata service.',
  ),
} as const

/** `auth` of sinks that can also sign requests. */
export const httpOrAwsAuth = (strategies: readonly ('basic' | 'bearer')[]) =>
  optional(
    tagged(
      'strategy',
      {
        aws: awsAuthMembers,
        ...(strategies.includes('basic')
          ? { basic: { user: text('User name.'), password: secret('Password of the user.') } }
          : {}),
        ...(strategies.includes('bearer') ? { bearer: { token: secret('Token, sent unchanged.') } } : {}),
      } as {
        aws: typeof awsAuthMembers
        basic: { user: Option<string>; password: Option<string> }
        bearer: { token: Option<string> }
      },
      'How requests authenticate.',
    ),
  )

export const compressionNames = ['none', 'gzip', 'snappy', 'zlib', 'zstd'] as const
export type CompressionName = (typeof compressionNames)[number]

/** `compression`: an algorithm, or a table with an algorithm and a level. */
export const compression = (
  algorithms: readonly CompressionName[],
  fallback: CompressionName,
  extensions: readonly CompressionName[] = [],
) =>
  either(
    oneOf(algorithms, 'The algorithm.', { extensions }),
    group(
      {
        algorithm: oneOf(algorithms, 'The algorithm.', { extensions }),
        level: optional(
          intOr(
            ['none', 'fast', 'default', 'best'],
            'Level from 0 to 9 for gzip and zlib, from 0 to 21 for zstd; other algorithms have no levels. By default, the agent uses the level that needs the least CPU time.',
            { zero: 'gzip and zlib do not compress, zstd uses its default level' },
          ),
        ),
      },
      'Algorithm and level.',
    ),
    'Compression of request bodies.',
    { default: fallback },
  )

export type CompressionOption = ReturnType<typeof compression> extends Option<infer T> ? T : never

export type RequestOptions = ReturnType<typeof request> extends Option<infer T> ? T : never
export type BatchOptions = ReturnType<typeof batch> extends Option<infer T> ? T : never
export type TlsOptions = ReturnType<typeof tls> extends Option<infer T> ? T : never
export type ProxyOptions = ReturnType<typeof proxy> extends Option<infer T> ? T : never
export type BufferOptions = ReturnType<typeof buffer> extends Option<infer T> ? T : never
export type HealthcheckOption = ReturnType<typeof healthcheck> extends Option<infer T> ? T : never
