// The ingestion API of log service A, which two component types use: lines of JSON, with their common origin in the query string.

import { encodingProblems } from '../../codecs/encoding/encoder.ts'
import { compileTransformer, timestampForm } from '../../codecs/transformer.ts'
import type { OptionProblem, Sink, SinkContext } from '../../component.ts'
import type { AnyEvent } from '../../delivery/batcher.ts'
import { templateFailed } from '../../delivery/failed-events.ts'
import { framed } from '../../delivery/request.ts'
import { PenstockError } from '../../errors.ts'
import { joinedKey, splitKey } from '../../event/joined-key.ts'
import type { LogEvent } from '../../event/log.ts'
import { Timestamp } from '../../event/timestamp.ts'
import { setField, type ValueObject } from '../../event/value.ts'
import { writeJsonTo } from '../../formats/json.ts'
import { type HttpSinkOptions, httpSink, unhealthy } from '../../http/sink.ts'
import type { TransformerOptions } from '../../schema/groups.ts'
import { compileTemplate, type Template } from '../../template.ts'
import { type TimeField, timeField } from '../../time-field.ts'

/** Largest body that the service accepts. */
const maxBodyBytes = 10_000_000

export interface IngestOptions extends Omit<HttpSinkOptions, 'auth' | 'compression'> {
  readonly api_key: string
  readonly endpoint: string
  readonly mac?: string | undefined
  readonly ip?: string | undefined
  readonly default_app: string
  readonly default_env: string
  readonly encoding: TransformerOptions
}

/** Origin of a request's lines: templates or constant texts. */
export interface RequestOrigin {
  readonly hostname: string
  readonly tags: readonly string[]
  readonly templates: boolean
}

export function ingestSink(context: SinkContext, options: IngestOptions, origin: RequestOrigin): Sink {
  const { timestampKey } = context.globals.logSchema
  const address = ingestAddress(options.endpoint)
  const partition = origin.templates ? compilePartition(context, origin, timestampKey) : undefined
  const fixed = joined(origin.hostname, origin.tags)
  const time = timeField([timestampKey], 'log_schema.timestamp_key', context)
  const line = compileLine(context, options, time)
  const query = (key: string): string => {
    const [hostname = '', tags] = splitKey(key === '' ? fixed : key)
    const parameters = new URLSearchParams({ hostname, now: String(Date.now()) })
    if (options.mac !== undefined) parameters.set('mac', options.mac)
    if (options.ip !== undefined) parameters.set('ip', options.ip)
    if (tags !== undefined) parameters.set('tags', tags)
    return parameters.toString()
  }
  const own: HttpSinkOptions = { ...options, auth: { strategy: 'basic', user: options.api_key, password: '' } }

  return httpSink(context, own, {
    // The service corrects clock differences by the time of sending, so each attempt includes it again.
    url: (key) => `${address}?${query(key)}`,
    headers: { 'content-type': 'application/json' },
    partition,
    begin: (open) => open.body.writeText('{"lines":['),
    encode(events, from, to, open) {
      const { body } = open
      for (let index = from; index < to; index++) {
        if (open.count > 0) body.writeByte(0x2c)
        const start = body.length
        writeJsonTo(body, line((events[index] as LogEvent).fields))
        open.mark(start)
      }
      time.report()
    },
    finish(open) {
      open.body.writeText(']}')
      return open
    },
    assemble: framed('{"lines":[', ',', ']}'),
    maxBodyBytes,
    secret: options.api_key,
    async healthcheck(get) {
      // Sends no line: if the address or the key is invalid here, it is invalid for all requests.
      const ask = (query: string) => get(`${address}${query}`, { 'content-type': 'application/json' }, '{"lines":[]}')
      let { status } = await ask('')
      // A service that requires the host responds with 400.
      if (status === 400) status = (await ask(`?${new URLSearchParams({ hostname: 'penstock' })}`)).status
      if (status >= 200 && status < 300) return
      if (status >= 500) throw new PenstockError('PEN_HEALTHCHECK', 'Server returned a server error', { status })
      if (status === 403) throw new PenstockError('PEN_HEALTHCHECK', 'Token is not valid, 403 returned.', { status })
      throw unhealthy(address, status)
    },
  })
}

function joined(hostname: string, tags: readonly string[]): string {
  return joinedKey(tags.length === 0 ? [hostname] : [hostname, tags.join(',')])
}

/** Returns the request address: a host alone gets HTTPS, and an existing path is kept. */
function ingestAddress(endpoint: string): string {
  const url = withScheme(endpoint)
  if (url === null) throw new PenstockError('PEN_CONFIG_INVALID', '`endpoint` must be a URL or the name of a host.')
  if (url.pathname === '/') url.pathname = '/logs/ingest'
  url.search = ''
  url.hash = ''
  return url.href
}

/** Problems of the options that a schema cannot express. */
export function ingestProblems(options: Pick<IngestOptions, 'endpoint' | 'encoding'>): OptionProblem[] {
  const problems: OptionProblem[] = encodingProblems(options.encoding)
  const url = withScheme(options.endpoint)
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    problems.push({ path: 'endpoint', message: 'must be a URL with scheme http or https, or the name of a host' })
  }
  return problems
}

function withScheme(endpoint: string): URL | null {
  return URL.parse(endpoint.includes('://') ? endpoint : `https://${endpoint}`)
}

function compilePartition(
  context: SinkContext,
  origin: RequestOrigin,
  timestampKey: string,
): ((event: AnyEvent) => string | undefined) | undefined {
  const hostname = compileTemplate(origin.hostname, timestampKey)
  const tags = origin.tags.map((tag) => compileTemplate(tag, timestampKey))
  const rendered = (event: AnyEvent, option: string, template: Template): string | undefined => {
    const text = template.render(event)
    if (text === undefined) templateFailed(context, option, template, event, true)
    return text
  }
  return (event) => {
    const host = rendered(event, 'hostname', hostname)
    if (host === undefined) return undefined
    if (tags.length === 0) return joinedKey([host])
    let all = ''
    for (let index = 0; index < tags.length; index++) {
      const tag = rendered(event, 'tags', tags[index] as Template)
      if (tag === undefined) return undefined
      const single = oneTag(tag, tags[index] as Template)
      all += index === 0 ? single : `,${single}`
    }
    return joinedKey([host, all])
  }
}

/**
 * The service takes tags as one comma-separated text without escapes. A comma from a field would add a tag that the user did not
 * write, so it is replaced. Commas in the user's own text stay.
 */
function oneTag(text: string, template: Template): string {
  return template.isStatic || !text.includes(',') ? text : text.replaceAll(',', '_')
}

/** Writes the line of an event: known fields by name, and all others under `meta`. */
function compileLine(
  context: SinkContext,
  options: IngestOptions,
  time: TimeField,
): (fields: ValueObject) => ValueObject {
  const { messageKey, timestampKey } = context.globals.logSchema
  const transform = compileTransformer(options.encoding)
  const written = timestampForm(options.encoding)

  return (fields) => {
    const kept = transform === undefined ? fields : transform.apply(fields)
    const line: ValueObject = { line: '' }
    let meta: ValueObject | undefined
    for (const name of Object.keys(kept)) {
      const value = kept[name]
      if (value === undefined) continue
      if (name === messageKey) line['line'] = value
      else if (name === timestampKey) line['timestamp'] = value
      else if (name === 'env' || name === 'app' || name === 'file') line[name] = value
      else {
        meta ??= {}
        setField(meta, name, value)
      }
    }
    // A time in text form gets the same format as the others.
    if (typeof line['timestamp'] === 'string') {
      const instant = time.of(fields)
      if (instant !== undefined) line['timestamp'] = written(instant)
    }
    line['timestamp'] ??= written(Timestamp.now())
    if (line['env'] === undefined) line['env'] = options.default_env
    if (line['app'] === undefined && line['file'] === undefined) line['app'] = options.default_app
    if (meta !== undefined) line['meta'] = meta
    return line
  }
}
