// Reads the content of stores: Loki (or VictoriaLogs instead), search engines, Prometheus, InfluxDB, and the events decoded by an event
// collector.

export interface LogEntry {
  readonly labels: Readonly<Record<string, string>>
  /** Nanoseconds since the epoch, as text because a number would lose digits. */
  readonly at: string
  readonly line: string
}

async function answer(url: string, init: RequestInit = {}): Promise<unknown> {
  const response = await fetch(url, { ...init, signal: AbortSignal.timeout(30_000) })
  const text = await response.text()
  if (!response.ok)
    throw new Error(`${init.method ?? 'GET'} ${url} answered ${response.status}: ${text.slice(0, 1000)}`)
  return text === '' ? undefined : JSON.parse(text)
}

interface LokiAnswer {
  readonly data: {
    readonly result: readonly { readonly stream: Record<string, string>; readonly values: [string, string][] }[]
  }
}

/** All entries of the last two hours for a Loki selector, oldest first. */
export async function queryLoki(url: string, selector: string, tenant?: string): Promise<LogEntry[]> {
  // Not more, because responses above 4 MB get lost between the parts of Loki.
  const pageSize = 1000
  const found = new Map<string, LogEntry>()
  // Tests write entries that are at most an hour old. A wider window is slower, because Loki splits it into one query per hour.
  let start = BigInt(Date.now() - 2 * 3_600_000) * 1_000_000n
  const end = BigInt(Date.now() + 60_000) * 1_000_000n
  for (;;) {
    const query = new URLSearchParams({
      query: selector,
      limit: String(pageSize),
      direction: 'forward',
      start: String(start),
      end: String(end),
    })
    const headers: Record<string, string> = tenant === undefined ? {} : { 'X-Scope-OrgID': tenant }
    const { data } = (await answer(`${url}/loki/api/v1/query_range?${query}`, { headers })) as LokiAnswer
    let count = 0
    for (const { stream, values } of data.result) {
      // Ignore labels that Loki adds.
      const { service_name: _, detected_level: __, ...labels } = stream
      for (const [at, line] of values) {
        count++
        if (BigInt(at) > start) start = BigInt(at)
        found.set(`${JSON.stringify(labels)} ${at} ${line}`, { labels, at, line })
      }
    }
    if (count < pageSize) break
  }
  return [...found.values()].sort((a, b) => (BigInt(a.at) < BigInt(b.at) ? -1 : BigInt(a.at) > BigInt(b.at) ? 1 : 0))
}

/** All entries in VictoriaLogs for a label and its value. */
export async function queryVictoriaLogs(url: string, label: string, value: string): Promise<LogEntry[]> {
  const query = new URLSearchParams({ query: `{${label}="${value}"}`, limit: '100000' })
  const response = await fetch(`${url}/select/logsql/query?${query}`, { signal: AbortSignal.timeout(30_000) })
  const lines = (await response.text()).split('\n').filter((line) => line !== '')
  return lines.map((text) => {
    const {
      _msg: line = '',
      _time: time = '',
      _stream,
      _stream_id,
      ...labels
    } = JSON.parse(text) as Record<string, string>
    const [seconds = '', fraction = ''] = time.replace('Z', '').split('.')
    return { labels, at: `${Date.parse(`${seconds}Z`) / 1000}${fraction.padEnd(9, '0')}`, line }
  })
}

/** The decoded entries in VictoriaLogs for a query, without the fields that it adds. */
export async function searchVictoriaLogs(url: string, query: string): Promise<Record<string, string>[]> {
  const response = await fetch(`${url}/select/logsql/query?${new URLSearchParams({ query, limit: '100000' })}`, {
    signal: AbortSignal.timeout(30_000),
  })
  const lines = (await response.text()).split('\n').filter((line) => line !== '')
  return lines.map((text) => {
    const { _stream, _stream_id, ...fields } = JSON.parse(text) as Record<string, string>
    return fields
  })
}

/**
 * All series in VictoriaMetrics with this label, as `name{label="value"} value@milliseconds …`, sorted.
 * @param hidden labels to leave out
 */
export async function exportVictoriaMetrics(
  url: string,
  label: string,
  value: string,
  hidden: readonly string[],
): Promise<string[]> {
  await fetch(`${url}/internal/force_flush`, { signal: AbortSignal.timeout(30_000) })
  const query = new URLSearchParams({ 'match[]': `{${label}="${value}"}` })
  const response = await fetch(`${url}/api/v1/export?${query}`, { signal: AbortSignal.timeout(30_000) })
  const lines = (await response.text()).split('\n').filter((line) => line !== '')
  return lines
    .map((text) => {
      const { metric, values, timestamps } = JSON.parse(text) as {
        metric: Record<string, string>
        values: number[]
        timestamps: number[]
      }
      const { __name__: name, ...labels } = metric
      const shown = Object.entries(labels).filter(([key]) => !hidden.includes(key))
      const pairs = shown.map(([key, text]) => `${key}="${text}"`)
      return `${name}{${pairs.sort().join()}} ${values.map((number, at) => `${number}@${timestamps[at]}`).join(' ')}`
    })
    .sort()
}

export interface Hit {
  readonly _index: string
  readonly _id: string
  readonly _source: Record<string, unknown>
}

/** A call of a search engine's API. */
export function searchApi(url: string, method: string, path: string, body?: unknown): Promise<unknown> {
  const payload =
    body === undefined ? {} : { body: JSON.stringify(body), headers: { 'Content-Type': 'application/json' } }
  return answer(`${url}${path}`, { method, ...payload })
}

/**
 * All documents of an index after a refresh, optionally sorted by a field. Pages come from one snapshot, because the engine merges its files
 * while documents arrive, which would otherwise duplicate or skip documents between pages.
 */
export async function searchAll(
  url: string,
  index: string,
  sortBy?: string,
  query: object = { match_all: {} },
): Promise<Hit[]> {
  await searchApi(url, 'POST', `/${index}/_refresh`)
  const sort = sortBy === undefined ? ['_doc'] : [{ [sortBy]: 'asc' }, '_doc']
  const keep = '1m'
  type Page = { readonly _scroll_id: string; readonly hits: { readonly hits: Hit[] } }
  let page = (await searchApi(url, 'POST', `/${index}/_search?scroll=${keep}`, { size: 5000, query, sort })) as Page
  const hits: Hit[] = []
  while (page.hits.hits.length > 0) {
    hits.push(...page.hits.hits)
    page = (await searchApi(url, 'POST', '/_search/scroll', { scroll: keep, scroll_id: page._scroll_id })) as Page
  }
  await searchApi(url, 'DELETE', '/_search/scroll', { scroll_id: page._scroll_id })
  return hits
}

interface PrometheusAnswer {
  readonly data: {
    readonly result: readonly { readonly metric: Record<string, string>; readonly values: [number, string][] }[]
  }
}

/** All samples of the last ten minutes for a selector, as `name{label="value"} value@seconds …`, sorted. */
export async function queryPrometheus(url: string, selector: string): Promise<string[]> {
  const query = new URLSearchParams({ query: `${selector}[10m]` })
  const { data } = (await answer(`${url}/api/v1/query?${query}`)) as PrometheusAnswer
  return data.result
    .map(({ metric: { __name__: name, ...labels }, values }) => {
      const pairs = Object.entries(labels).map(([label, value]) => `${label}="${value}"`)
      return `${name}{${pairs.sort().join()}} ${values.map(([time, value]) => `${value}@${time}`).join(' ')}`
    })
    .sort()
}

interface InfluxAnswer {
  readonly results: readonly {
    readonly series?: readonly { readonly name: string; readonly columns: string[]; readonly values: unknown[][] }[]
  }[]
}

/** The rows that a statement returns, by measurement, without empty columns. */
export async function queryInflux(
  url: string,
  database: string,
  statement: string,
): Promise<Record<string, Record<string, unknown>[]>> {
  const query = new URLSearchParams({ db: database, q: statement, epoch: 'ms' })
  const { results } = (await answer(`${url}/query?${query}`, { method: 'POST' })) as InfluxAnswer
  return Object.fromEntries(
    (results[0]?.series ?? []).map(({ name, columns, values }) => [
      name,
      values.map((row) =>
        Object.fromEntries(columns.map((column, at) => [column, row[at]]).filter(([, value]) => value !== null)),
      ),
    ]),
  )
}

/** A log decoded by an event collector. */
export interface CollectedLog {
  /** Milliseconds since the epoch. The collector's times are floating-point nanoseconds. */
  readonly at: number
  readonly body: unknown
  readonly attributes: Readonly<Record<string, unknown>>
  readonly resource: Readonly<Record<string, unknown>>
}

type CollectedValue = Readonly<Record<string, unknown>>
type CollectedPairs = readonly { readonly key: string; readonly value: CollectedValue }[]

interface CollectedRequest {
  readonly resourceLogs: readonly {
    readonly resource: { readonly attributes?: CollectedPairs }
    readonly scopeLogs: readonly {
      readonly logRecords: readonly {
        readonly timeUnixNano: string
        readonly body: CollectedValue
        readonly attributes?: CollectedPairs
      }[]
    }[]
  }[]
}

/** All logs that an event collector has decoded so far. */
export async function readCollector(url: string): Promise<CollectedLog[]> {
  const response = await fetch(url, { signal: AbortSignal.timeout(30_000) })
  const requests = (await response.text())
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as CollectedRequest)
  return requests.flatMap(({ resourceLogs }) =>
    resourceLogs.flatMap(({ resource, scopeLogs }) =>
      scopeLogs.flatMap(({ logRecords }) =>
        logRecords.map(({ timeUnixNano, body, attributes }) => ({
          at: Math.round(Number(timeUnixNano) / 1e6),
          body: collectedValue(body),
          attributes: collectedMembers(attributes),
          resource: collectedMembers(resource.attributes),
        })),
      ),
    ),
  )
}

function collectedMembers(pairs: CollectedPairs = []): Record<string, unknown> {
  return Object.fromEntries(pairs.map(({ key, value }) => [key, collectedValue(value)]))
}

/** Decodes an OTLP value: `{"stringValue":"a"}` is `a`; objects and arrays are lists in `values`. */
function collectedValue(value: CollectedValue): unknown {
  const [[type, content] = ['', undefined]] = Object.entries(value)
  const values = (content as { values?: unknown } | undefined)?.values ?? []
  switch (type) {
    case 'kvlistValue':
      return collectedMembers(values as CollectedPairs)
    case 'arrayValue':
      return (values as CollectedValue[]).map(collectedValue)
    default:
      return content
  }
}
