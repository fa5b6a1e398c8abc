// Options that all exporters share: address, authentication, retries and queue.

import { minDiskBuffer } from '@penstock/agent/config'
import { isTable } from '@penstock/agent/schema'
import { withoutPlaceholders } from './environment.ts'
import { refusedExtension } from './extensions.ts'
import { type Context, type Part, seconds } from './mapping.ts'

/** The compression methods of HTTP exporters. */
export const allCompressions = ['gzip', 'snappy', 'zlib', 'zstd']

const tlsOptions = {
  'tls.ca_file': '`tls.ca_file`',
  'tls.ca_pem': '`tls.ca_file`',
  'tls.cert_file': '`tls.crt_file`',
  'tls.cert_pem': '`tls.crt_file`',
  'tls.key_file': '`tls.key_file`',
  'tls.key_pem': '`tls.key_file`',
  'tls.server_name_override': '`tls.server_name`',
  'tls.insecure_skip_verify': '`tls.verify_certificate`, `tls.verify_hostname`',
} as const

export const deliveryOptions = {
  timeout: '`request.timeout_secs`',
  'retry_on_failure.enabled': '`request.retry_attempts`',
  'retry_on_failure.initial_interval': '`request.retry_initial_backoff_secs`',
  'retry_on_failure.max_interval': '`request.retry_max_duration_secs`',
  'sending_queue.num_consumers': '`request.concurrency`',
  'sending_queue.storage': 'a disk buffer',
  'sending_queue.queue_size':
    '`buffer.max_size` of a disk buffer; `buffer.max_events` of a memory buffer if the sizer counts items',
  'sending_queue.sizer': 'the unit of `queue_size`',
} as const

export const httpOptions = {
  endpoint: 'the address',
  headers: '`request.headers`',
  'auth.authenticator': '`auth`, by the extension',
  compression: '`compression`',
  proxy_url: '`proxy`',
  ...tlsOptions,
  ...deliveryOptions,
} as const

const pool = 'the sink manages its connections'

export const httpItself = {
  'tls.insecure': 'the scheme of the address decides about TLS',
  'tls.min_version': 'TLS 1.2 is the lowest version',
  'tls.reload_interval': 'the agent reloads files when they change',
  'retry_on_failure.multiplier': 'retry delays follow the Fibonacci sequence',
  'retry_on_failure.randomization_factor': 'delays have random jitter',
  'retry_on_failure.max_elapsed_time':
    'the sink retries until the destination accepts the events; later events wait in its buffer',
  'sending_queue.enabled': 'all sinks have a buffer',
  'sending_queue.block_on_overflow': 'the source waits while the buffer is full',
  'sending_queue.wait_for_result': 'checkpoints of sources advance when events are delivered',
  'sending_queue.batch': 'the sink builds its own batches',
  batcher: 'the sink builds its own batches',
  read_buffer_size: pool,
  write_buffer_size: pool,
  max_idle_conns: pool,
  max_idle_conns_per_host: pool,
  max_conns_per_host: pool,
  idle_conn_timeout: pool,
  disable_keep_alives: pool,
  http2_read_idle_timeout: pool,
  http2_ping_timeout: pool,
  force_attempt_http2: pool,
  compression_params: 'the sink sets the compression level itself',
} as const

function tlsOf(part: Part): Record<string, unknown> {
  const names = {
    ca_file: ['ca_file', 'ca_pem'],
    crt_file: ['cert_file', 'cert_pem'],
    key_file: ['key_file', 'key_pem'],
    server_name: ['server_name_override'],
  }
  const tls: Record<string, unknown> = {}
  for (const [to, from] of Object.entries(names)) {
    const value = from.map((name) => part.text(`tls.${name}`)).find((text) => text !== undefined)
    if (value !== undefined) tls[to] = value
  }
  if (part.flag('tls.insecure_skip_verify', false)) {
    tls['verify_certificate'] = false
    tls['verify_hostname'] = false
  }
  return tls
}

const whole = (text: string | undefined, min: number) => {
  const found = seconds(text)
  return found === undefined ? undefined : Math.max(min, Math.ceil(found))
}

function requestOf(part: Part): Record<string, unknown> {
  const entries: [string, unknown][] = [
    ['timeout_secs', whole(part.text('timeout'), 1)],
    ['retry_attempts', part.flag('retry_on_failure.enabled', true) ? undefined : 0],
    ['retry_initial_backoff_secs', whole(part.text('retry_on_failure.initial_interval'), 1)],
    ['retry_max_duration_secs', whole(part.text('retry_on_failure.max_interval'), 1)],
    [
      'concurrency',
      part.has('sending_queue.num_consumers') ? Number(part.text('sending_queue.num_consumers')) : undefined,
    ],
  ]
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined && !Number.isNaN(value)))
}

function bufferOf(part: Part): Record<string, unknown> | undefined {
  const size = Number(part.text('sending_queue.queue_size'))
  const sizer = part.text('sending_queue.sizer') ?? 'requests'
  if (part.has('sending_queue.storage')) {
    // The collector's queue counts requests; 1 GiB corresponds to a queue of the default length with full requests.
    const wanted = sizer === 'bytes' && size > 0 ? size : 1024 ** 3
    return { type: 'disk', max_size: Math.max(minDiskBuffer, wanted) }
  }
  return sizer === 'items' && size > 0 ? { max_events: size } : undefined
}

interface Credentials {
  readonly auth?: Readonly<Record<string, unknown>>
  readonly headers?: Readonly<Record<string, string>>
  /** Further options of a sink that signs its requests. */
  readonly service?: Readonly<Record<string, unknown>>
}

const signingOptions = {
  name: 'sigv4auth',
  options: {
    region: '`aws.region`',
    service: '`opensearch_service_type`',
    'assume_role.arn': '`auth.assume_role`',
    'assume_role.session_name': '`auth.session_name`',
    'assume_role.sts_region': '`auth.region`',
    'assume_role.external_id': '`auth.external_id`',
  },
} as const

/** Options of other extensions that add credentials. */
const credentialOptions: Readonly<Record<string, readonly string[]>> = {
  basicauth: ['client_auth.username', 'client_auth.password'],
  bearertokenauth: ['token', 'tokens', 'filename', 'scheme', 'header'],
  headerssetter: ['headers'],
}

/** The options of a sink that signs requests for AWS. */
function signing(extension: Part, context: Context): Credentials {
  context.reportOptions(extension, signingOptions)
  const named = Object.entries({
    assume_role: 'arn',
    session_name: 'session_name',
    region: 'sts_region',
    external_id: 'external_id',
  })
  const role = named.flatMap(([name, option]) => {
    const text = extension.text(`assume_role.${option}`)
    return text === undefined ? [] : [[name, text] as const]
  })
  const region = extension.text('region')
  return {
    auth: { strategy: 'aws', ...Object.fromEntries(role) },
    service: {
      ...(region === undefined ? {} : { aws: { region } }),
      // This service does not answer questions about its version.
      ...(extension.text('service') === 'aoss' ? { opensearch_service_type: 'serverless', api_version: 'v8' } : {}),
    },
  }
}

/** The extension that adds credentials to requests. */
function credentials(part: Part, context: Context, canSign: boolean): Credentials {
  const id = part.text('auth.authenticator')
  if (id === undefined) return {}
  const found = context.extension(id)
  const refuse = (
    reason: string,
    nearest = 'Set `auth` of the sink, or a header in `request.headers`.',
  ): Credentials => {
    context.gap(part.place(['auth']), `${part.id}: auth ${id}`, reason, nearest)
    return {}
  }
  if (found === undefined) return refuse('the configuration does not define the extension')
  const extension = withoutPlaceholders(found, true, context)
  const { type } = extension
  const known = credentialOptions[type]
  if (known !== undefined) {
    const options = Object.fromEntries(known.map((name) => [name, '']))
    context.reportOptions(extension, { name: type, options })
  }
  if (type === 'basicauth') {
    const user = extension.text('client_auth.username')
    if (user === undefined) return refuse('the extension has no `client_auth.username`')
    return { auth: { strategy: 'basic', user, password: extension.text('client_auth.password') ?? '' } }
  }
  if (type === 'bearertokenauth') {
    const token = extension.text('token')
    if (token === undefined) return refuse('the token is in a file, or there are several tokens')
    const scheme = extension.text('scheme') ?? 'Bearer'
    const header = extension.text('header') ?? 'Authorization'
    if (scheme === 'Bearer' && header === 'Authorization') return { auth: { strategy: 'bearer', token } }
    return { headers: { [header]: scheme === '' ? token : `${scheme} ${token}` } }
  }
  if (type === 'headerssetter') {
    const headers: Record<string, string> = {}
    for (const { key, value } of extension.tables('headers')) {
      if (value === undefined || value === null) {
        return refuse('the value of a header comes from the request that carried the record')
      }
      headers[String(key)] = String(value)
    }
    return { headers }
  }
  if (type === 'sigv4auth' && canSign) return signing(extension, context)
  const refused = refusedExtension(type)
  return refuse(refused?.reason ?? `\`${type}\` is not converted`, refused?.nearest)
}

/**
 * The options that HTTP sinks share.
 * @param canSign whether the sink signs requests for AWS
 */
export function connectionOf(
  part: Part,
  context: Context,
  compressions: readonly string[],
  canSign = false,
): Record<string, unknown> {
  const tls = tlsOf(part)
  const { auth, headers: more, service } = credentials(part, context, canSign)
  const headers = { ...textTable(part.get('headers')), ...more }
  const request = { ...requestOf(part), ...(Object.keys(headers).length > 0 ? { headers } : {}) }
  const buffer = bufferOf(part)
  const compression = compressionOf(part, context, compressions)
  const proxy = part.text('proxy_url')
  return {
    ...(compression === undefined ? {} : { compression }),
    ...(Object.keys(tls).length > 0 ? { tls } : {}),
    ...(auth === undefined ? {} : { auth }),
    ...(Object.keys(request).length > 0 ? { request } : {}),
    ...(buffer === undefined ? {} : { buffer }),
    ...(proxy === undefined ? {} : { proxy: { http: proxy, https: proxy } }),
    ...service,
  }
}

/** Headers, as a table or as a list of names and values. */
function textTable(value: unknown): Record<string, string> {
  if (Array.isArray(value)) {
    return Object.fromEntries(value.filter(isTable).map(({ name, value: text }) => [String(name), String(text)]))
  }
  return isTable(value) ? Object.fromEntries(Object.entries(value).map(([name, text]) => [name, String(text)])) : {}
}

/** The compression; as in all HTTP exporters, `gzip` by default. */
function compressionOf(part: Part, context: Context, known: readonly string[]): string | undefined {
  const wanted = (part.text('compression') ?? 'gzip').toLowerCase()
  if (wanted === 'none' || wanted === '') return 'none'
  if (known.includes(wanted)) return wanted
  context.gap(
    part.place(['compression']),
    `${part.id}: compression`,
    `the sink does not write \`${wanted}\``,
    'The sink uses `gzip`, which all HTTP receivers accept.',
  )
  return 'gzip'
}
