// Log lines of web servers: the common log format, the combined format and error logs. `-` means no value and gives no
// field. The patterns backtrack within a line, with bounded cost for any length.

import { float, type Value, type ValueObject } from '../event/value.ts'
import { parseTimestamp, type Strftime } from './datetime.ts'
import { parseDecimal, parseInteger } from './number.ts'
import { bounded, type Pattern } from './regex-linear.ts'
import type { Zone } from './timezone.ts'

/** The reason why the parsing of a line stopped. */
export interface LineProblem {
  readonly problem: string
}

export function isLineProblem(result: ValueObject | LineProblem): result is LineProblem {
  return typeof (result as LineProblem).problem === 'string' && Object.keys(result).length === 1
}

// A request may be any text up to a quote after which the line matches; a field ends where the next one can begin.
const request = String.raw`(?:-|"(?:-|\s*(?<message>(?<method>[\p{L}\p{M}\p{N}\p{Pc}]+)\s+(?<path>[^]*?)\s+(?<protocol>[^]*?)\s*|[^]*?)\s*)")`
const common = String.raw`^\s*(?:-|(?<host>[^\n]*?))\s+(?:-|(?<identity>[^\n]*?))\s+(?:-|(?<user>[^\n]*?))\s+(?:-|\[(?:-|(?<timestamp>[^[]*))\])\s+${request}\s+(?:-|(?<status>\d+))\s+(?:-|(?<size>\d+))`

// The usual form of a line, with one blank between fields and without quotes in quotes: this gives the same match in one
// pass. Only other forms need the patterns above.
const defaultCommon = String.raw`^(?:-|(?<host>\S+)) (?:-|(?<identity>\S+)) (?:-|(?<user>\S+)) \[(?!-\])(?<timestamp>[^\][]+)\] "(?<message>(?<method>\w+) (?<path>[^"\s\\][^"\s]*) (?<protocol>[^"\s]+))" (?:-|(?<status>\d+)) (?:-|(?<size>\d+))`

const commonLines = [new RegExp(`${defaultCommon}$`), bounded(new RegExp(`${common}\\s*$`, 'u'))]
// Text after the agent is ignored; an agent that begins with `-` is treated as missing.
const combinedLines = [
  new RegExp(String.raw`${defaultCommon} "(?<referrer>-|(?![-\s])[^"]*)" "(?:-|(?<agent>[^-\s"][^"]*|))"`),
  bounded(
    new RegExp(String.raw`${common}\s+(?:-|"(?:-|\s*(?<referrer>[^]*?)"))\s+(?:-|"(?:-|\s*(?<agent>[^]*?)"))`, 'u'),
  ),
]

/** The groups of the first pattern that matches. */
export function firstMatch(patterns: readonly Pattern[], line: string): Readonly<Record<string, string>> | undefined {
  for (const pattern of patterns) {
    const match = pattern.exec(line)
    if (match !== null) return match.groups
  }
  return undefined
}

const errorHead = String.raw`^\s*(?:-|\[(?:-|(?<timestamp>[^[]*))\])\s+(?:-|\[(?:-|(?<module>[^:]*):(?<severity>[^[]*))\])\s+(?:-|\[\s*pid\s*(?:-|(?<pid>[^:]*)(?::\s*tid\s*(?<thread>[^[]*))?)\])\s`
const errorLines = [
  // The usual form with a client.
  /^\[(?!-\])(?<timestamp>[^\][]+)\] \[(?!-\])(?<module>[^:\][]*):(?<severity>[^:\][]+)\] \[pid (?<pid>\d+)(?::tid (?<thread>[^\][\s]+))?\] \[client (?!-\])(?<client>[^\s\][:]+):(?<port>\d+)\] (?<message>[^\s\][-][^\][\n]*)$/,
  bounded(
    new RegExp(
      String.raw`${errorHead}(?:-|\[\s*client\s*(?:-|(?<client>[^\n]*:?):(?<port>[^[]*))\])\s(?:-|(?<message>[^\n]*))\s*$`,
    ),
  ),
  // Threaded servers write two messages, before and after the client.
  bounded(
    /^\s*\[(?<timestamp>[^\]]+)\]\s+\[(?:-|(?<module>[^:]+)):(?<severity>[^\]]+)\]\s+\[pid\s+(?<pid>\d+)(?::tid\s+(?<thread>\d+))?\]\s+(?<message1>[^[]*?:\s+(?:[^[]*?:\s+)?)?(?:\[client\s+(?<client>[^\n]+?):(?<port>\d+)\]\s+)?(?<message2>[^\n]*)\s*$/,
  ),
]

const integers = new Set([
  'status',
  'size',
  'pid',
  'port',
  'tid',
  'cid',
  'line',
  'id',
  'body_bytes_size',
  'request_length',
  'upstream_response_length',
  'upstream_status',
])
const floats = new Set(['request_time', 'upstream_response_time', 'excess'])

/**
 * The fields of a matched line. @param timestampPattern format of the field `timestamp` @param choosable whether users choose this format, so
 * that an error names it
 */
export function lineFields(
  groups: Readonly<Record<string, string | undefined>>,
  timestampPattern: Strftime,
  zone: Zone,
  choosable = true,
): ValueObject | LineProblem {
  const fields: ValueObject = {}
  for (const name in groups) {
    const text = groups[name]
    if (text === undefined) continue
    let value: Value = text
    if (name === 'timestamp') {
      const timestamp = parseTimestamp(timestampPattern, text, zone)
      if (timestamp === undefined) {
        const using = choosable ? ` using format ${timestampPattern.pattern}` : ''
        return { problem: `failed parsing timestamp ${text}${using}: the text does not match or names no valid time` }
      }
      value = timestamp
    } else if (integers.has(name)) {
      const number = parseInteger(text)
      if (number === undefined) return { problem: `failed parsing ${name}` }
      value = number
    } else if (floats.has(name)) {
      const number = parseDecimal(text)
      if (number === undefined) return { problem: `failed parsing ${name}` }
      value = float(number)
    }
    fields[name] = value
  }
  return fields
}

export function parseCommonLog(line: string, timestampPattern: Strftime, zone: Zone): ValueObject | LineProblem {
  const groups = firstMatch(commonLines, line)
  if (groups === undefined) return { problem: 'failed parsing common log line' }
  return lineFields(groups, timestampPattern, zone)
}

export function parseCombinedLog(line: string, timestampPattern: Strftime, zone: Zone): ValueObject | LineProblem {
  const groups = firstMatch(combinedLines, line)
  if (groups === undefined) return { problem: 'failed parsing combined log line' }
  return lineFields(groups, timestampPattern, zone)
}

/** Lines of the error log. Threaded servers have `message1`, if there is text before the client, and `message2`. */
export function parseErrorLog(line: string, timestampPattern: Strftime, zone: Zone): ValueObject | LineProblem {
  const groups = firstMatch(errorLines, line)
  if (groups === undefined) return { problem: 'failed parsing error log line' }
  return lineFields(groups, timestampPattern, zone)
}

// Lines of nginx: its default format, its error log, and its ingress controller.
const nginxHead = String.raw`^\s*(?:-|(?<ADDR>\S+))\s+-\s+(?:-|(?<USER>\S+))\s+\[(?<timestamp>TIME)\]\s+"(?<request>[^"]*)"\s+`
const nginx = (time: string, address: string, user: string, pattern: string): Pattern[] => {
  const head = nginxHead.replace('TIME', time).replace('ADDR', address).replace('USER', user)
  // In their usual form, lines have one blank between fields and no bracket in the date.
  const usual = (head + pattern).replace(`(?<timestamp>${time})`, String.raw`(?<timestamp>[^\]\n]+)`)
  return [
    new RegExp(usual.replaceAll(String.raw`\s+`, ' ').replaceAll(String.raw`\s*`, '')),
    bounded(new RegExp(head + pattern)),
  ]
}

const nginxLines = {
  combined: nginx(
    String.raw`[^\n]+`,
    'client',
    'user',
    String.raw`(?<status>\d+)\s+(?<size>\d+)\s+"(?<referer>[^"]*)"\s+"(?<agent>[^"]*)"(?:\s+"(?:-|(?<compression>[^"]+))")?\s*$`,
  ),
  main: nginx(
    String.raw`[^\]]+`,
    'remote_addr',
    'remote_user',
    String.raw`(?<status>\d+)\s+(?<body_bytes_size>\d+)\s+"(?:-|(?<http_referer>[^"]+))"\s+"(?:-|(?<http_user_agent>[^"]+))"\s+"(?:-|(?<http_x_forwarded_for>[^"]+))"\s*$`,
  ),
  ingress_upstreaminfo: nginx(
    String.raw`[^\]]+`,
    'remote_addr',
    'remote_user',
    String.raw`(?<status>\d+)\s+(?<body_bytes_size>\d+)\s+"(?:-|(?<http_referer>[^"]*))"\s+"(?:-|(?<http_user_agent>[^"]+))"\s+(?<request_length>\d+)\s+(?<request_time>\d+\.\d+)\s+\[(?<proxy_upstream_name>[^\]]+)\]\s+\[(?<proxy_alternative_upstream_name>[^\]]+)?\]\s+(?<upstream_addr>\S+)\s+(?:-|(?<upstream_response_length>\d+))\s+(?:-|(?<upstream_response_time>\d+\.\d+))\s+(?:-|(?<upstream_status>\d+))\s+(?<req_id>\S+)\s*$`,
  ),
  error: [
    // A message ends at the first of the markers, or at the end of the line.
    /^(?<timestamp>[^\s[]+ [^\s[]+) \[(?<severity>\w+)\] (?<pid>\d+)#(?<tid>\d+):(?: \*(?<cid>\d+))? (?<message>[^,\s[][^,\n[]*(?:,(?!\s+(?:excess|client|server|request|upstream|host|refer?rer):)[^,\n[]*)*)(?:, client: (?<client>[^,\n[]+))?(?:, server: (?<server>[^,\n[]*))?(?:, request: "(?<request>[^"\n[]*)")?(?:, upstream: "(?<upstream>[^"\n[]*)")?(?:, host: "(?<host>[^"\n[]*)")?(?:, refer?rer: "(?<referer>[^"\n[]*)")?$/,
    bounded(
      /^\s*(?<timestamp>[^\n]+)\s+\[(?<severity>\w+)\]\s+(?<pid>\d+)#(?<tid>\d+):(?:\s+\*(?<cid>\d+))?\s+(?<message>[^\n]+?)(?:,\s+excess:\s+(?<excess>[^\s,]+),?\sby\szone\s"(?<zone>[^,]+)")?(?:,\s+client:\s+(?<client>[^,]+))?(?:,\s+server:\s+(?<server>[^,]*))?(?:,\s+request:\s+"(?<request>[^"]*)")?(?:,\s+upstream:\s+"(?<upstream>[^"]*)")?(?:,\s+host:\s+"(?<host>[^"]*)")?(?:,\s+refer?rer:\s+"(?<referer>[^"]*)")?\s*$/,
    ),
  ],
} as const

export function parseNginxLog(
  line: string,
  form: keyof typeof nginxLines,
  timestampPattern: Strftime,
  zone: Zone,
): ValueObject | LineProblem {
  const groups = firstMatch(nginxLines[form], line)
  if (groups === undefined) return { problem: 'failed parsing log line' }
  return lineFields(groups, timestampPattern, zone)
}
