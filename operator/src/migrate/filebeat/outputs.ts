// Converts Filebeat outputs to sinks. A transform before the sink gives the event the form that Filebeat would have sent.

import type { Step } from '../draft.ts'
import { flagIn, type Mapping, option, type Part, type Report, textIn, textsIn } from '../loki/context.ts'
import { millisecondsOf, textOf } from '../loki/tree.ts'
import { type Exception, none, type Refusal } from '../page.ts'
import { type Choices, indexLines, indexName, pipelineLines, reportVersion, withVersion } from './choices.ts'
import { expressionOf, fieldsIn, templateOf } from './formats.ts'
import type { SourcePart } from './inputs.ts'
import { namesNode, reportVariables, secretIn as secret } from './variables.ts'

const security = {
  'ssl.enabled': '`https` in the address',
  'ssl.certificate_authorities': '`tls.ca_file`',
  'ssl.certificate': '`tls.crt_file`',
  'ssl.key': '`tls.key_file`',
  'ssl.key_passphrase': '`tls.key_pass`',
  'ssl.verification_mode': '`tls.verify_certificate`, `tls.verify_hostname`',
} as const

const always = { enabled: 'a disabled output is left out' } as const

const sending: Readonly<Record<string, string>> = Object.fromEntries(
  [
    ...[
      'worker',
      'workers',
      'bulk_max_size',
      'bulk_max_bytes',
      'backoff.init',
      'backoff.max',
      'max_retries',
      'loadbalance',
      'preset',
      'allow_older_versions',
      'http_endpoint',
      'idle_connection_timeout',
      'ttl',
      'pipelining',
    ],
    ...['queue.mem.events', 'queue.mem.flush.min_events', 'queue.mem.flush.timeout', 'slow_start'],
    ...['non_indexable_policy.drop', 'non_indexable_policy.dead_letter_index', 'partial_disable'],
  ].map((name) => [name, '`batch`, `request` and `buffer` configure batching, retries and buffering'] as const),
)

const unknownAuthority = {
  how: 'the agent trusts the authorities of its system and `tls.ca_file`',
  unless: /./,
  reason: 'the agent does not trust a certificate authority by its fingerprint',
  nearest: 'Put the certificate of the authority into a file or a Secret, and set `tls.ca_file`.',
  isAbsent: true,
} as const

/** Options that need no counterpart. */
const quiet: Readonly<Record<string, string | Exception>> = {
  ...sending,
  ...Object.fromEntries(
    ['ssl.supported_protocols', 'ssl.cipher_suites', 'ssl.curve_types', 'ssl.renegotiation'].map((name) => [
      name,
      'the agent and the destination agree on TLS 1.2 or newer',
    ]),
  ),
  'ssl.ca_trusted_fingerprint': unknownAuthority,
  'ssl.ca_sha256': unknownAuthority,
  escape_html: 'the values of the events are the same',
  'codec.json.escape_html': 'the values of the events are the same',
}

/** A file of a certificate or a key. Filebeat looks for a relative path in the folder of its configuration. */
function fileOf(part: Part, name: string, text: string, report: Report): string {
  if (/^(?:\/|\$\{)|-----BEGIN/.test(text) || text === '') return text
  const path = `/etc/filebeat/${text.replace(/^\.\//, '')}`
  const reason = `the path \`${text}\` is relative to the folder of the configuration`
  const nearest = `The sink reads \`${path}\`; set another path if the folder is not \`/etc/filebeat\`.`
  report.replaced(option(part, name) ?? part, `${part.name}: ${name}`, reason, nearest)
  return path
}

function tlsOf(part: Part, report: Report): Record<string, unknown> {
  const mode = textIn(part, 'ssl.verification_mode')
  const pathIn = (name: string) => fileOf(part, name, textIn(part, name) ?? '', report)
  const authorities = 'ssl.certificate_authorities'
  const listed = textsIn(part, authorities).map((text) => fileOf(part, authorities, text, report))
  const isText = listed.every((text) => text.includes('-----BEGIN'))
  const [authority, ...more] = isText && listed.length > 0 ? [listed.map((text) => text.trim()).join('\n')] : listed
  if (more.length > 0)
    report.gap(
      option(part, authorities) ?? part,
      `${part.name}: ${authorities}`,
      'a sink reads certificate authorities from one file',
      'Put the certificates into one file, and set `tls.ca_file`.',
    )
  const tls = {
    ...(authority === undefined || more.length > 0 ? {} : { ca_file: secret(authority) }),
    ...(textIn(part, 'ssl.certificate') === undefined ? {} : { crt_file: secret(pathIn('ssl.certificate')) }),
    ...(textIn(part, 'ssl.key') === undefined ? {} : { key_file: secret(pathIn('ssl.key')) }),
    ...(textIn(part, 'ssl.key_passphrase') === undefined
      ? {}
      : { key_pass: secret(textIn(part, 'ssl.key_passphrase') ?? '') }),
    ...(mode === 'none'
      ? { verify_certificate: false, verify_hostname: false }
      : mode === 'certificate'
        ? { verify_hostname: false }
        : {}),
  }
  return Object.keys(tls).length === 0 ? {} : { tls }
}

/** The address of a host whose port is a variable: a key of the Secret with the whole address. */
function wholeAddress(part: Part, host: string, port: string, report: Report): string {
  const variable = /\w+/.exec(host.includes('$') ? host : port)?.[0] ?? ''
  const name = `${variable.replace(/_(?:HOSTS?|PORT)$/i, '')}_ADDRESS`
  const reason = `the port of an address must be a number, so \`${name}\` contains the whole address`
  const nearest = `Add the key \`${name}\` to the Secret, such as \`https://elasticsearch:9200\`.`
  report.replaced(part, `${part.name}: ${host}:${port}`, reason, nearest)
  return secret(`\${${name}}`)
}

/** The user and the password in an address, such as `https://user:password@host:9200`. */
const userInAddress = /^(https?:\/\/)([^:@/]+):([^@/]+)@/

/** The user and the password for a destination. Those in an address take precedence. */
function userOf(part: Part): { readonly user: string; readonly password: string } | undefined {
  const [, , user, password] =
    textsIn(part, 'hosts')
      .map((host) => userInAddress.exec(host))
      .find(Boolean) ?? []
  if (user !== undefined && password !== undefined) return { user: decoded(user), password: decoded(password) }
  const given = textIn(part, 'username')
  return given === undefined ? undefined : { user: given, password: textIn(part, 'password') ?? '' }
}

const decoded = (text: string) =>
  text.replace(/(?:%[0-9a-f]{2})+/gi, (bytes) => Buffer.from(bytes.replaceAll('%', ''), 'hex').toString())

/** A variable whose name says that its value is a whole address. */
const addressVariable = /^\$\{\w*(?:URL|URI|ENDPOINT|ADDRESS)S?\}$/i

/** The header for a key `ID:KEY`, which Filebeat sends in base64. A key with a variable is a key of the Secret that contains the base64 text. */
function keyHeader(part: Part, report: Report): Record<string, string> {
  const key = textIn(part, 'api_key')
  if (key === undefined || key === '') return {}
  const variable = [...key.matchAll(/\$\{(\w+)[^}]*\}/g)].at(-1)?.[1]
  // Without a colon, the text is in base64 already.
  if (variable === undefined)
    return { Authorization: `ApiKey ${key.includes(':') ? Buffer.from(key).toString('base64') : key}` }
  const name = `${variable.toUpperCase()}_BASE64`
  const reason = `Filebeat sends the key \`ID:KEY\` in base64; the sink sends the text in \`${name}\` unchanged`
  const command = `printf %s "${key}" | base64 -w0`
  const nearest = `Add the key \`${name}\` to the Secret, with the output of \`${command}\`.`
  report.replaced(option(part, 'api_key') ?? part, `${part.name}: api_key`, reason, nearest)
  return { Authorization: `ApiKey ${secret(`\${${name}}`)}` }
}

function hostsOf(part: Part, report: Report, port: string): string[] {
  const isSecure = textIn(part, 'protocol') === 'https' || flagIn(part, 'ssl.enabled') === true
  const path = textIn(part, 'path') ?? ''
  return textsIn(part, 'hosts').flatMap((list) => {
    // The default of a variable may contain a list as text.
    const texts = list
      .replace(/^\[|\]$/g, '')
      .split(',')
      .map((text) => text.trim().replace(/^["']|["']$/g, ''))
    return texts.map((address) => {
      const text = address.replace(userInAddress, '$1')
      if (addressVariable.test(text)) return secret(text)
      const found = /^(?:(https?):\/\/)?([^:/]+|\$\{\w+\}|\[[^\]]+\])(?::(\d+|\$\{\w+\}))?(\/.*)?$/.exec(text)
      const given = found?.[3]
      if (given?.includes('$') === true) return wholeAddress(part, `${found?.[2] ?? ''}`, given, report)
      const number = given ?? port
      return secret(
        `${found?.[1] ?? (isSecure ? 'https' : 'http')}://${found?.[2] ?? text}:${number}${found?.[4] ?? path}`,
      )
    })
  })
}

function proxyOf(part: Part): Record<string, unknown> {
  const proxy = textIn(part, 'proxy_url')
  if (flagIn(part, 'proxy_disable') === true) return { proxy: { enabled: false } }
  if (proxy === undefined || proxy === '') return {}
  // Filebeat adds the scheme to an address without one.
  const address = secret(/^(?:https?:\/\/|\$\{)/.test(proxy) ? proxy : `http://${proxy}`)
  return { proxy: { http: address, https: address } }
}

const search: Mapping<[Report, Choices], SourcePart> = {
  name: 'elasticsearch',
  becomes: '`search_engine`',
  options: {
    ...always,
    ...security,
    hosts: '`endpoints`',
    protocol: 'the address',
    path: 'the address',
    username: '`auth`',
    password: '`auth`',
    api_key: 'the header `Authorization`, with the key in base64',
    index: '`bulk.index`',
    indices: '`bulk.index` by a field that a transform sets',
    pipeline: '`pipeline`, or `bulk.pipeline` by a field that a transform sets',
    pipelines: '`bulk.pipeline` by a field that a transform sets',
    compression_level: '`compression`',
    headers: '`request.headers`',
    parameters: '`query`',
    timeout: '`request.timeout_secs`',
    proxy_url: '`proxy`',
    proxy_disable: '`proxy.enabled`',
  },
  itself: {
    ...quiet,
    template: 'the agent does not set up templates or life cycles; existing ones stay unchanged',
    ilm: 'the agent does not set up templates or life cycles; existing ones stay unchanged',
    host: 'Filebeat does not read this option; addresses are in `hosts`',
  },
  build: (part, report, choices) => {
    const lines: string[] = []
    const own = textIn(part, 'index')
    const given = choices.alias ?? own
    if (own !== undefined && given !== own) {
      const reason = `the alias \`${given}\` of the index life cycle replaces this name, as in versions before 8`
      report.replaced(part, `elasticsearch: ${own}`, reason, 'For newer versions, set `bulk.index` to the name.')
    }
    reportVersion(part, 'elasticsearch: index', given ?? '', report)
    const template = given === undefined ? 'filebeat' : templateOf(secret(indexName(withVersion(given))))
    if (given === undefined) {
      report.replaced(
        part,
        'elasticsearch: index',
        'the name of the data stream contains the version of Filebeat',
        'The index is `filebeat`; set another name in `bulk.index`.',
      )
    }
    const chosen = indexLines(part, withVersion(given ?? 'filebeat'), choices, report)
    if (template === undefined && chosen.length === 0) {
      report.gap(
        part,
        `elasticsearch: ${given}`,
        'the name of the index contains values that events do not have',
        'Set `bulk.index` to a template with fields of the event.',
      )
    }
    const pipeline = textIn(part, 'pipeline')
    const choosing = pipelineLines(part, choices, report)
    const acts = choices.metadata.has('op_type')
    const action = acts ? ['%action = string(%metadata.op_type) ?? "create"'] : []
    lines.push(...chosen, ...choosing, ...action, ...timeLines(choices))
    const user = userOf(part)
    const timeout = textIn(part, 'timeout')
    const timeoutMs =
      timeout === undefined ? undefined : /^\d+$/.test(timeout) ? Number(timeout) * 1000 : millisecondsOf(timeout)
    const headers = keyHeader(part, report)
    const added = option(part, 'headers')?.value
    if (added instanceof Map) for (const [name, item] of added) headers[name] = secret(textOf(item) ?? '')
    const parameters = option(part, 'parameters')?.value
    const config = {
      endpoints: hostsOf(part, report, '9200'),
      bulk: {
        action: acts ? '{{ %action }}' : 'create',
        index: chosen.length > 0 ? '{{ %index }}' : (template ?? 'filebeat'),
        ...(choosing.length === 0 ? {} : { pipeline: '{{ %pipeline }}' }),
      },
      ...(choices.ownTime ? {} : { encoding: { except_fields: ['timestamp'] } }),
      ...(choices.id ? { id_key: '%metadata._id' } : {}),
      ...(parameters instanceof Map
        ? { query: Object.fromEntries([...parameters].map(([name, item]) => [name, textOf(item) ?? ''])) }
        : {}),
      ...(pipeline === undefined || choosing.length > 0 ? {} : { pipeline: secret(indexName(pipeline)) }),
      ...(Number(textIn(part, 'compression_level') ?? 0) > 0 ? { compression: 'gzip' } : {}),
      ...proxyOf(part),
      ...tlsOf(part, report),
      ...(user === undefined
        ? {}
        : { auth: { strategy: 'basic', user: secret(user.user), password: secret(user.password) } }),
      ...(Object.keys(headers).length === 0 && timeoutMs === undefined
        ? {}
        : {
            request: {
              ...(timeoutMs === undefined ? {} : { timeout_secs: Math.max(1, Math.round(timeoutMs / 1000)) }),
              ...(Object.keys(headers).length === 0 ? {} : { headers }),
            },
          }),
    }
    return { component: { type: 'search_engine', config }, steps: form(lines) }
  },
}

const form = (lines: readonly string[]): readonly Step[] => [{ type: 'remap', text: lines.join('\n') }]

/** Statements that move the time of the event to its name in documents, beside a field `timestamp` of the event. */
const timeLines = ({ ownTime }: Choices): readonly string[] => [
  '."@timestamp" = .timestamp',
  ...(ownTime ? ['del(.timestamp)', 'if exists(.log_timestamp) { .timestamp = del(.log_timestamp) }'] : []),
]

/** The codec of an output that writes lines, and the steps before it. */
function linesOf(part: Part, choices: Choices, report: Report) {
  const format = textIn(part, 'codec.format.string')
  const json = { codec: 'json', ...(choices.ownTime ? {} : { except_fields: ['timestamp'] }) }
  if (format === undefined) return { encoding: json, steps: form(timeLines(choices)) }
  const text = expressionOf(withVersion(format), report.readsEnvironment)
  reportVersion(part, `${part.name}: codec.format`, format, report)
  if (text !== undefined) {
    // Filebeat drops an event without a field of the format.
    const fields = [...new Set(fieldsIn(withVersion(format)))].map((field) => `exists(${field})`)
    const whole: readonly Step[] = fields.length === 0 ? [] : [{ type: 'filter', text: fields.join(' && ') }]
    return { encoding: { codec: 'text' }, steps: [...whole, ...form([`.message = ${text}`])] }
  }
  const reason = 'the format contains values that events do not have'
  report.gap(
    part,
    `${part.name}: codec.format`,
    reason,
    'Build the text in a remap transform, and use the codec `text`.',
  )
  return { encoding: json, steps: form(timeLines(choices)) }
}

const file: Mapping<[Report, Choices], SourcePart> = {
  name: 'file',
  becomes: '`file`',
  options: {
    ...always,
    path: '`path`',
    filename: '`path`',
    'codec.json.pretty': 'lines of JSON',
    'codec.format.string': 'the codec `text`, after a remap transform',
    rotate_every_kb: 'a row of the report: the sink does not rotate files',
    number_of_files: 'a row of the report: the sink does not rotate files',
    rotate_on_startup: 'a row of the report: the sink does not rotate files',
    permissions: 'a row of the report: the permissions of the agent apply',
  },
  itself: quiet,
  build: (part, report, choices) => {
    const reason = 'the old agent rotates its files, keeps a few of them, and sets their permissions; the sink does not'
    report.replaced(part, 'file: rotation', reason, 'Put the date into `path`, and let `logrotate` remove old files.')
    const path = `${textIn(part, 'path') ?? '/tmp/filebeat'}/${textIn(part, 'filename') ?? 'filebeat'}`
    const template = namesNode(path) ? undefined : templateOf(secret(path))
    const chosen = template === undefined ? expressionOf(path, report.readsEnvironment) : undefined
    if (chosen !== undefined) reportVariables(part, `file: ${path}`, path, report)
    if (template === undefined && chosen === undefined)
      report.gap(
        part,
        `file: ${path}`,
        'the path contains values that events do not have',
        'Set `path` to a template with fields of the event.',
      )
    const { encoding, steps } = linesOf(part, choices, report)
    const to = chosen === undefined ? (template ?? '/tmp/filebeat/filebeat') : '{{ %path }}'
    return {
      component: { type: 'file', config: { path: `${to}.ndjson`, encoding } },
      steps: chosen === undefined ? steps : [...form([`%path = ${chosen}`]), ...steps],
    }
  },
}

const consoleOutput: Mapping<[Report, Choices], SourcePart> = {
  name: 'console',
  becomes: '`console`',
  options: {
    ...always,
    pretty: 'lines of JSON',
    'codec.json.pretty': 'lines of JSON',
    'codec.format.string': 'the codec `text`, after a remap transform',
  },
  itself: quiet,
  build: (part, report, choices) => {
    const { encoding, steps } = linesOf(part, choices, report)
    return { component: { type: 'console', config: { encoding } }, steps }
  },
}

const discard: Mapping<[Report, Choices], SourcePart> = {
  name: 'discard',
  becomes: '`blackhole`',
  options: always,
  itself: quiet,
  build: () => ({ component: { type: 'blackhole' }, steps: [] }),
}

export const outputs: readonly Mapping<[Report, Choices], SourcePart>[] = [search, file, consoleOutput, discard]

export const refusedOutputs: readonly Refusal[] = [
  none(
    'logstash',
    'there is no sink for this protocol',
    'Use `search_engine`, or the sink `http` with the input `http` of Logstash.',
  ),
  none(
    'kafka',
    'there is no sink for this protocol',
    'Use the sink `message_broker` (Pulsar), or a bridge that accepts HTTP.',
  ),
  none(
    'redis',
    'there is no sink for this protocol',
    'Use the sink `message_broker` (Pulsar), or a receiver that accepts HTTP.',
  ),
]
