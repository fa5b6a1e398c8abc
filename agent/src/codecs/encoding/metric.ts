// Writes metric events as JSON (codecs `json` and `native_json`) and as a line of text (codec `text`).
// The members of the JSON form have a fixed order, and tags are sorted. Values always look like floats (`1.0`).

import { type MetricEvent, type MetricTags, singleTagValue, type TagValue } from '../../event/metric.ts'
import { compareKeys } from '../../event/value.ts'
import { floatText, jsonFloat } from '../../formats/json.ts'
import { prettyMetric, type Screen } from '../../formats/pretty.ts'

/** How to write the values of a tag: only the last value, an array of all, or (`native`) an array only if there are several. */
export type TagForm = 'single' | 'full' | 'native'

export function metricJson(metric: MetricEvent, tags: TagForm): string {
  let text = `{"name":${JSON.stringify(metric.name)}`
  if (metric.namespace !== undefined) text += `,"namespace":${JSON.stringify(metric.namespace)}`
  if (metric.tags !== undefined) {
    const members = tagsJson(metric.tags, tags)
    if (members !== '') text += `,"tags":{${members}}`
  }
  if (metric.timestamp !== undefined) text += `,"timestamp":"${metric.timestamp.toString()}"`
  if (metric.intervalMs !== undefined) text += `,"interval_ms":${metric.intervalMs}`
  return `${text},"kind":"${metric.kind}",${valueJson(metric)}}`
}

function tagsJson(tags: MetricTags, form: TagForm): string {
  let text = ''
  for (const name of sortedNames(tags)) {
    const value = tags.get(name) as TagValue
    let shown: string | undefined
    if (form === 'single') {
      const single = singleTagValue(value)
      if (single !== undefined) shown = JSON.stringify(single)
    } else {
      shown = JSON.stringify(form === 'native' || Array.isArray(value) ? value : [value])
    }
    if (shown !== undefined) text += `${text === '' ? '' : ','}${JSON.stringify(name)}:${shown}`
  }
  return text
}

function valueJson(metric: MetricEvent): string {
  const value = metric.value
  switch (value.type) {
    case 'counter':
    case 'gauge':
      return `"${value.type}":{"value":${number(value.value)}}`
    case 'set':
      return `"set":{"values":${JSON.stringify([...value.values].sort(compareKeys))}}`
    case 'distribution': {
      const samples = value.samples.map((sample) => `{"value":${number(sample.value)},"rate":${sample.rate}}`)
      return `"distribution":{"samples":[${samples.join()}],"statistic":"${value.statistic}"}`
    }
    case 'histogram': {
      const buckets = value.buckets.map(
        (bucket) => `{"upper_limit":${limit(bucket.upperLimit)},"count":${bucket.count}}`,
      )
      return `"aggregated_histogram":{"buckets":[${buckets.join()}],"count":${value.count},"sum":${number(value.sum)}}`
    }
    case 'summary': {
      const quantiles = value.quantiles.map(
        (item) => `{"quantile":${number(item.quantile)},"value":${number(item.value)}}`,
      )
      return `"aggregated_summary":{"quantiles":[${quantiles.join()}],"count":${value.count},"sum":${number(value.sum)}}`
    }
  }
}

function number(value: number): string {
  return Number.isFinite(value) ? jsonFloat(value) : 'null'
}

function limit(value: number): string {
  return Number.isFinite(value) ? jsonFloat(value) : `"${floatText(value)}"`
}

/** `[TIMESTAMP ]NAME{tag="v",…} KIND VALUE`. */
export function metricText(metric: MetricEvent, tags: TagForm): string {
  const text = timelessText(metric, tags)
  return metric.timestamp === undefined ? text : `${metric.timestamp.toString()} ${text}`
}

/** The same for people, with the time of day. */
export function metricPretty(metric: MetricEvent, tags: TagForm, screen: Screen): string {
  return prettyMetric(timelessText(metric, tags), metric.timestamp?.toString(), screen)
}

function timelessText(metric: MetricEvent, tags: TagForm): string {
  let text = ''
  if (metric.namespace !== undefined) text += `${word(metric.namespace)}_`
  text += `${word(metric.name)}{${metric.tags === undefined ? '' : tagsText(metric.tags, tags)}} `
  text += metric.kind === 'absolute' ? '= ' : '+ '
  const value = metric.value
  switch (value.type) {
    case 'counter':
    case 'gauge':
      return text + floatText(value.value)
    case 'set':
      return text + [...value.values].sort(compareKeys).map(word).join(' ')
    case 'distribution':
      return `${text}${value.statistic} ${value.samples.map((item) => `${item.rate}@${floatText(item.value)}`).join(' ')}`
    case 'histogram':
      return `${text}count=${value.count} sum=${floatText(value.sum)} ${value.buckets
        .map((bucket) => `${bucket.count}@${floatText(bucket.upperLimit)}`)
        .join(' ')}`
    case 'summary':
      return `${text}count=${value.count} sum=${floatText(value.sum)} ${value.quantiles
        .map((item) => `${floatText(item.quantile)}@${floatText(item.value)}`)
        .join(' ')}`
  }
}

function tagsText(tags: MetricTags, form: TagForm): string {
  const shown: string[] = []
  for (const name of sortedNames(tags)) {
    const value = tags.get(name) as TagValue
    if (form === 'single') {
      const single = singleTagValue(value)
      if (single !== undefined) shown.push(`${word(name)}=${quoted(single)}`)
      continue
    }
    const values = value === null || typeof value === 'string' ? [value] : value
    for (const item of values) shown.push(item === null ? word(name) : `${word(name)}=${quoted(item)}`)
  }
  return shown.join()
}

function sortedNames(tags: MetricTags): string[] {
  return [...tags.keys()].sort(compareKeys)
}

function word(text: string): string {
  return /^[A-Za-z0-9_]*$/.test(text) ? text : quoted(text)
}

const escapes: Record<string, string> = { '"': '\\"', '\\': '\\\\', '\n': '\\n', '\r': '\\r', '\t': '\\t', '\0': '\\0' }

function quoted(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is escaped here
  return `"${text.replace(/["\\\u0000-\u001f\u007f]/g, (character) => escapes[character] ?? `\\u{${character.charCodeAt(0).toString(16)}}`)}"`
}
