// Formats JSON events, as received by `tap` and `penstock run`, as short readable lines.

import { metricFromJson } from '../codecs/decoding/metric-json.ts'
import { metricPretty } from '../codecs/encoding/metric.ts'
import { MetricEvent } from '../event/metric.ts'
import { isObject, type Value } from '../event/value.ts'
import { isFailedJson, parseJson } from '../formats/json.ts'
import { prettyLog, type Screen } from '../formats/pretty.ts'
import { printable } from '../printable.ts'

/** Formats an event in the form of codec `json`; a log event with all members of a metric is shown as a metric. */
export function prettyJson(json: string, screen: Screen): string {
  const event = parseJson(json)
  if (isFailedJson(event) || !isObject(event)) return printable(json)
  return prettyValue(event, screen)
}

export function prettyValue(event: Value, screen: Screen): string {
  const metric = metricFromJson(event)
  if (metric instanceof MetricEvent) return metricPretty(metric, 'single', screen)
  return prettyLog(isObject(event) ? event : { message: event }, screen)
}
