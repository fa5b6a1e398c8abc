// Groups of options that many components share, each declared once. A component passes its own defaults.

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

/** Default of limits that are meant to be without end. */
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
        enabled: bool('Whether the destination is checked at start.', { default: true }),
        uri: optional(url('Address to check in place of the usual one.')),
        timeout: seconds('Seconds after which the check has failed.', { default: 10 }),
      },
      'Check of the destination at start.',
    ),
    'Check of the destination at start; a failure is logged, and ends the agent with `--require-healthy`.',
    { default: {} as never },
  )

/** `buffer` of a sink. Disk buffers are checked by the component's envelope: `max_size` is required with `type: disk`. */
export const buffer = () =>
  group(
    {
      type: oneOf(
        ['memory', 'disk'],
        'Where events wait: `memory` is fast and lost in a crash, `disk` survives it, but for the last 500 ms.',
        { default: 'memory' },
      ),
      max_events: optional(
        uint('Most events in the buffer (500 if not given). Only for type `memory`.', {
          minimum: 1,
          limit: 'bufferEvents',
        }),
      ),
      max_size: optional(
        bytes('Most bytes on disk, at least 268435488. Required for type `disk`, only for it.', {
          minimum: 0, // the check of sinks refuses what is too small
          limit: 'bufferBytes',
        }),
      ),
      when_full: oneOf(
        ['block', 'drop_newest'],
        'Behaviour when the buffer is full: `block` makes the source wait, `drop_newest` discards the event.',
        { default: 'block' },
      ),
    },
    'Events that wait for the sink.',
  )

const proxyAddress = { ports: webPorts, bare: 'http' } as const

export const proxy = () =>
  group(
    {
      enabled: optional(
        bool('Whether proxies are used. If not given, as the global setting says; true if that says nothing.'),
      ),
      http: optional(address('Proxy for plain HTTP, a URL.', proxyAddress, { examples: ['http://proxy:3128'] })),
      https: optional(address('Proxy for HTTPS, a URL.', proxyAddress, { examples: ['http://proxy:3128'] })),
      no_proxy: optional(
        list(
          text('A host.'),
          'Hosts reached directly: `name`, `.domain` with its subdomains, IP, CIDR block, `host:port` or `*`.',
        ),
      ),
    },
    'Proxies. Overrides the global setting, which overrides the environment.',
  )

export interface BatchDefaults {
  max_bytes?: number
  max_events?: number
  timeout_secs: number
  /** Whether `timeout_secs` takes no fraction. */
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

/** For sinks over HTTP. */
const authGrace = {
  auth_grace_secs: uint(
    'Seconds for which a request that the destination refuses with status 401 or 403 is tried again, before its events are discarded: time to rotate a credential. The time begins at the first refusal; when it is over, further refusals discard at once, until there was none for as long.',
    { default: 300, zero: 'discard at once' },
  ),
}

const requestMembers = (defaults: RequestDefaults) => ({
  concurrency: intOr(
    ['adaptive', 'none'],
    'Requests in flight: a number, `none` for one, `adaptive` to let the agent find it.',
    {
      limit: 'concurrency',
      default: defaults.concurrency ?? 'none',
    },
  ),
  rate_limit_duration_secs: uint('Length of the window of `rate_limit_num` in seconds.', {
    default: 1,
    minimum: 1,
  }),
  rate_limit_num: uint('Most requests in one window.', { default: unlimited, minimum: 1 }),
  retry_attempts: uint('Most retries of a request.', {
    zero: 'never retry',
    default: defaults.retry_attempts ?? unlimited,
  }),
  retry_initial_backoff_secs: uint(
    'Wait before the first retry in seconds; later waits follow the Fibonacci sequence.',
    {
      default: 1,
      minimum: 1,
    },
  ),
  retry_max_duration_secs: uint('Longest wait between two retries in seconds.', { default: 3600, minimum: 1 }),
  retry_jitter_mode: oneOf(
    ['full', 'none'],
    'Whether up to half of each wait is added at random, so that agents that failed together do not return together: `full` adds it, `none` does not.',
    {
      default: 'full',
    },
  ),
  timeout_secs: uint(
    'Seconds after which a request is given up and retried. Not below the limit of the destination itself, or requests double.',
    {
      default: 60,
      minimum: 1,
    },
  ),
  adaptive_concurrency: group(
    {
      initial_concurrency: uint('Limit to begin with.', { default: 1, minimum: 1, limit: 'concurrency' }),
      max_concurrency_limit: uint('Highest limit.', { default: 200, minimum: 1, limit: 'concurrency' }),
      decrease_ratio: float('Part of the limit that is kept when it is lowered.', {
        default: 0.9,
        exclusiveMinimum: 0,
        exclusiveMaximum: 1,
      }),
      ewma_alpha: float('Weight of new round-trip times against the moving average.', {
        default: defaults.ewma_alpha ?? 0.4,
        exclusiveMinimum: 0,
        exclusiveMaximum: 1,
      }),
      rtt_deviation_scale: float('How many deviations of round-trip time count as usual.', {
        zero: 'every time above the average is too long',
        default: defaults.rtt_deviation_scale ?? 2.5,
        minimum: 0,
      }),
    },
    'How `concurrency: adaptive` finds its limit.',
  ),
})

/** `request` of a sink: the middleware around each call. */
export const request = (defaults: RequestDefaults = {}) =>
  group(
    {
      ...requestMembers(defaults),
      ...authGrace,
      headers: map(text('Value of the header.'), 'Headers added to every request.', { default: {}, names: 'header' }),
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
      enabled: withBool('Whether TLS is required: addresses without it are refused.', defaults.enabled),
      alpn_protocols: optional(list(text('A protocol.'), 'Protocols offered, the preferred first.')),
      ca_file: optional(
        path('Further certificate authority: file in DER or PEM, or PEM text.', pem, { aliases: ['ca_path'] }),
      ),
      crt_file: optional(
        path('Certificate to identify with: file in DER, PEM or PKCS#12, or PEM text.', pem, { aliases: ['crt_path'] }),
      ),
      key_file: optional(
        path('Private key of the certificate: file in DER or PEM, or PEM text.', pem, { aliases: ['key_path'] }),
      ),
      key_pass: optional(secret('Passphrase of the key.')),
      server_name: optional(text('Name asked for and verified in place of the host of the address.')),
      verify_certificate: bool('Whether the peer must have a valid certificate of a trusted issuer.', {
        default: true,
      }),
      verify_hostname: bool('Whether the certificate must bear the name of the host.', { default: true }),
    },
    'How TLS connections are made. Give absolute paths: others are looked up from the working directory of the agent.',
  )

function withBool(description: string, value: boolean | undefined): Option<boolean | undefined> {
  return value === undefined ? optional(bool(description)) : bool(description, { default: value })
}

const codecNames = ['avro', 'csv', 'gelf', 'json', 'logfmt', 'native', 'native_json', 'raw_message', 'text'] as const

/** The codecs of a sink whose output people read: only such a sink has `pretty`. */
export const screenCodecs = [...codecNames, 'pretty'] as const
export type EncodingCodec = (typeof screenCodecs)[number]

/** Codecs whose bytes are text, for destinations that take an event as text inside of a document. */
export const textCodecs: readonly EncodingCodec[] = codecNames.filter((codec) => codec !== 'avro' && codec !== 'native')

const timestampFormats = ['rfc3339', 'unix', 'unix_float', 'unix_ms', 'unix_ns', 'unix_us'] as const
type TimestampFormat = (typeof timestampFormats)[number]

const transformerMembers = (extensions: readonly TimestampFormat[]) => ({
  only_fields: optional(list(fieldPath('A field.'), 'Fields that are kept; all others are left out.')),
  except_fields: optional(list(fieldPath('A field.'), 'Fields that are left out.')),
  timestamp_format: oneOf(timestampFormats, 'How timestamps are written.', { default: 'rfc3339', extensions }),
})

/** Forms of timestamps that only the search engine must take. */
const furtherForms = timestampFormats.slice(2)

/** An `encoding` that is malformed is reported by one sentence, with the precise ones as its help (requirements, Errors). */
const reportedAsOne = { 'x-encoding': true }

/**
 * `encoding` of a sink that has no codec to choose: which fields are sent, and how timestamps are written.
 * @param extensions forms of timestamps that are more than the requirements list
 */
export const transformer = (
  description = 'Which fields are sent, and how timestamps are written.',
  extensions: readonly TimestampFormat[] = furtherForms,
) => ({ ...group(transformerMembers(extensions), description), ...reportedAsOne })

/** Why a sink that takes text takes no codec that writes other bytes. */
const notText = 'writes bytes that are not text; this destination takes events as text, and could not give them back'

/** Why a sink that programs read takes no codec for people. */
const forPeople = 'writes short lines for people, without all fields; use `json`, `logfmt` or `text`'

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
      codec: { ...oneOf(codecs, 'How an event becomes bytes.'), 'x-refused': refusedCodecs(codecs) },
      avro: optional(group({ schema: text('The Avro schema, as JSON.') }, 'Options of codec `avro`.')),
      csv: optional(
        group(
          {
            fields: list(fieldPath('A field.'), 'Columns and their order.', { minItems: 1 }),
            delimiter: text('Character between columns.', { default: ',' }),
            double_quote: bool('Whether quotes inside a quoted value are doubled; else they are escaped.', {
              default: true,
            }),
            escape: text('Character that escapes quotes if they are not doubled.', { default: '"' }),
            quote: text('Character around values that need it.', { default: '"' }),
            quote_style: oneOf(['always', 'necessary', 'never', 'non_numeric'], 'Which values are quoted.', {
              default: 'necessary',
            }),
            capacity: bytes('Accepted for compatibility; buffers size themselves.', {
              default: 8192,
              zero: 'as any other number',
            }),
          },
          'Options of codec `csv`.',
        ),
      ),
      json: optional(group({ pretty: bool('Whether to indent.', { default: false }) }, 'Options of codec `json`.')),
      metric_tag_values: {
        ...oneOf(
          ['single', 'full'],
          'Whether metric tags are shown as their last value or as arrays of all. Only for codecs `json` and `text`.',
          {
            default: 'single',
          },
        ),
        'x-only-with': { codec: ['json', 'text'] },
      },
      ...transformerMembers(furtherForms),
    },
    'How events become bytes.',
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
  either(uint('Its byte.', { maximum: 255, zero: 'the byte NUL' }), text('The character.'), 'Byte between frames.')

/** Longest frame of method `length_delimited`. */
export const defaultFrameLength = 8 * 1024 * 1024

/** `framing` of a source. Left out as a whole, a message is a frame, and a stream is framed as its codec has it. */
export const framing = () =>
  optional({
    ...group(
      {
        method: oneOf(framingMethods, 'How frames are separated.', { default: 'bytes' }),
        character_delimited: optional(
          group(
            {
              delimiter: delimiter(),
              max_length: optional(
                bytes('Longest frame, without the delimiter. Set one for data that is not trusted.', {
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
                bytes('Longest frame, without the newline. Set one for data that is not trusted.', {
                  limit: 'frameBytes',
                }),
              ),
            },
            'Options of method `newline_delimited`.',
          ),
        ),
        octet_counting: optional(
          group(
            { max_length: optional(bytes('Longest frame.', { limit: 'frameBytes' })) },
            'Options of method `octet_counting`.',
          ),
        ),
        length_delimited: optional(
          group(
            { max_frame_length: bytes('Longest frame.', { default: defaultFrameLength, limit: 'frameBytes' }) },
            'Options of method `length_delimited`.',
          ),
        ),
      },
      'How frames are separated. By default, a message is one frame, and the codec decides the framing of a stream.',
    ),
    default: undefined, // an empty table is not the same as none
  })

/** `framing` of a sink: output has no limits. If omitted, the default of the codec applies. */
export const outgoingFraming = () =>
  optional(
    group(
      {
        method: oneOf(framingMethods, 'How frames are separated.'),
        character_delimited: optional(group({ delimiter: delimiter() }, 'Options of method `character_delimited`.')),
      },
      'How frames are separated in a stream of bytes.',
    ),
  )

export type OutgoingFramingOptions = ReturnType<typeof outgoingFraming> extends Option<infer T> ? T : never

export type FramingOptions = ReturnType<typeof framing> extends Option<infer T> ? T : never

export const decodingCodecs = ['bytes', 'gelf', 'json', 'native', 'native_json', 'syslog'] as const
export type DecodingCodec = (typeof decodingCodecs)[number]

const lossy = (codec: string) =>
  optional(
    group(
      { lossy: bool('Whether invalid UTF-8 is replaced by U+FFFD; else the frame fails.', { default: true }) },
      `Options of codec \`${codec}\`.`,
    ),
  )

/** `decoding` of a source. */
export const decoding = () =>
  group(
    {
      codec: oneOf(decodingCodecs, 'How a frame becomes events.', { default: 'bytes' }),
      json: lossy('json'),
      gelf: lossy('gelf'),
      native_json: lossy('native_json'),
      syslog: lossy('syslog'),
    },
    'How bytes become events.',
  )

export type DecodingOptions = ReturnType<typeof decoding> extends Option<infer T> ? T : never

/** `auth` of an HTTP client: `basic` or `bearer`. */
export const httpAuth = () =>
  optional(
    tagged(
      'strategy',
      {
        basic: { user: text('Name of the user.'), password: secret('Password of the user.') },
        bearer: { token: secret('Token, sent as it is.') },
      },
      'How requests are authenticated.',
    ),
  )

/** Members of `auth` with `strategy: aws`: the given members decide where credentials come from. */
export const awsAuthMembers = {
  access_key_id: optional(secret('Access key; with `secret_access_key`.', { means: { explicit: 'keys' } })),
  secret_access_key: optional(secret('Secret of the access key.', { means: { explicit: 'keys' } })),
  session_token: optional(secret('Token of temporary keys.')),
  assume_role: optional(text('Resource name of a role to assume.')),
  external_id: optional(text('Identifier that the owner of the role asks for.')),
  session_name: optional(text('Name of the session of the role.')),
  credentials_file: optional(path('File with credentials.', { use: 'read' })),
  profile: optional(text('Profile in that file.')),
  region: optional(address('Region for requests to the token service.', hostPart)),
  load_timeout_secs: optional(uint('Seconds for a look-up of credentials.')),
  imds: group(
    {
      max_attempts: uint('Attempts to reach the instance metadata service.', { default: 4, minimum: 1 }),
      connect_timeout_seconds: uint('Seconds to connect to it.', { default: 1 }),
      read_timeout_seconds: uint('Seconds to read from it.', { default: 1 }),
    },
    'The instance metadata service.',
  ),
} as const

/** `auth` of sinks that also speak to signed services. */
export const httpOrAwsAuth = (strategies: readonly ('basic' | 'bearer')[]) =>
  optional(
    tagged(
      'strategy',
      {
        aws: awsAuthMembers,
        ...(strategies.includes('basic')
          ? { basic: { user: text('Name of the user.'), password: secret('Password of the user.') } }
          : {}),
        ...(strategies.includes('bearer') ? { bearer: { token: secret('Token, sent as it is.') } } : {}),
      } as {
        aws: typeof awsAuthMembers
        basic: { user: Option<string>; password: Option<string> }
        bearer: { token: Option<string> }
      },
      'How requests are authenticated.',
    ),
  )

export const compressionNames = ['none', 'gzip', 'snappy', 'zlib', 'zstd'] as const
export type CompressionName = (typeof compressionNames)[number]

/** `compression`: an algorithm, or a table of algorithm and level. */
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
            '0 to 9 for gzip and zlib, 0 to 21 for zstd; others take none. Without a level the agent does what takes least CPU.',
            { zero: 'gzip and zlib do not compress, zstd takes its default' },
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
export type AcknowledgementsOption = ReturnType<typeof acknowledgements> extends Option<infer T> ? T : never
export type HealthcheckOption = ReturnType<typeof healthcheck> extends Option<infer T> ? T : never
export type HttpAuthOptions = NonNullable<ReturnType<typeof httpAuth> extends Option<infer T> ? T : never>
