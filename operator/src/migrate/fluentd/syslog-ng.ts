// Resources of the logging-operator for syslog-ng as elements of Fluentd: the conditions, parsers and rewrite rules of a flow become steps, and
// an output becomes a step that builds what it sends, followed by the match for the same destination.

import { fieldLiteral, textLiteral } from '@penstock/agent/config'
import type { Gap, Step } from '../draft.ts'
import { below, isMap, itemsOf, type Place, pairsOf, type Tree, textOf, textsOf } from '../loki/tree.ts'
import { eventTime } from '../unix-time.ts'
import { element } from './element-maker.ts'
import type { Element } from './syntax.ts'

export class UnknownSyntax extends Error {}

/** The names of a field: `json.kubernetes.labels.app.kubernetes.io/name`, with one of several delimiters. Names of labels may contain it. */
function fieldOf(name: string): readonly string[] {
  const [, sign = '', rest = ''] = /^json([^\w\s])(.+)$/s.exec(name) ?? []
  if (rest === '') throw new UnknownSyntax(`\`${name}\` is not a field of the record`)
  const [, before = '', last] = /^(kubernetes.(?:labels|annotations|namespace_labels).)(.+)$/s.exec(rest) ?? []
  if (last !== undefined) return [...before.slice(0, -1).split(sign), last]
  return rest.split(sign)
}

const record = 'filter(.) -> |key, _value| { key != "timestamp" }'

/** Macros for times, as in `strftime`. */
const dates: Readonly<Record<string, string>> = {
  YEAR: '%Y',
  MONTH: '%m',
  DAY: '%d',
  HOUR: '%H',
  MIN: '%M',
  SEC: '%S',
  ISODATE: '%Y-%m-%dT%H:%M:%S%:z',
  UNIXTIME: '%s',
}

/** Statements that set a variable to the text of a template. */
function templateLines(template: string, variable: string): string[] {
  const lines: string[] = []
  const parts = template
    .split(/(\$\((?:[^()]|\([^()]*\))*\)|\$\{[^}]*\}|\$[A-Z_]+)/)
    .filter((part) => part !== '')
    .map((part, index) => {
      if (!part.startsWith('$')) return textLiteral(part.replaceAll('\\n', '\n').replaceAll('\\"', '"'))
      if (part.startsWith('$(')) return `encode_json(${objectOf(part)})`
      const name = part.replace(/^\$\{?|\}$/g, '')
      const format = Object.hasOwn(dates, name) ? dates[name] : undefined
      if (format !== undefined) return `(format_timestamp(${eventTime}, ${textLiteral(format)}) ?? "")`
      if (name === 'MESSAGE' || name === 'MSG') return `encode_json(${record})`
      // The operator does not let syslog-ng parse a header of the line.
      if (['MSGHDR', 'PROGRAM', 'PID', 'MSGID'].includes(name)) return '""'
      if (name === 'HOST') return '(get_hostname() ?? "")'
      const at = fieldLiteral(fieldOf(name))
      lines.push(`${variable}_${index} = if ${at} == null { "" } else { to_string(${at}) ?? encode_json(${at}) }`)
      return `${variable}_${index}`
    })
  return [...lines, `${variable} = ${parts.join(' + ') || '""'}`]
}

/** `$(format-json --subkeys json. --exclude json.a.*)` as an expression for the object. */
function objectOf(template: string): string {
  const words = /^\$\(format-json\s+(.*)\)$/s.exec(template.trim())?.[1]?.trim().split(/\s+/)
  if (words === undefined) throw new UnknownSyntax(`the template \`${template}\` has no counterpart`)
  let result = record
  let isWhole = false
  for (let at = 0; at < words.length; at++) {
    const word = words[at] ?? ''
    const value = words[at + 1] ?? ''
    if (word === '--subkeys' && /^json\W$/.test(value)) isWhole = true
    else if (/^json\W\*$/.test(word)) {
      isWhole = true
      continue
    } else if (word === '--key-delimiter') {
      // The delimiter of names, which are those of objects within objects here.
    } else if (word === '--exclude') {
      const path = fieldOf(value.replace(/\W\*$/, ''))
      result = `remove(${result}, ${JSON.stringify(path)}) ?? {}`
    } else throw new UnknownSyntax(`\`${word}\` of a template has no counterpart`)
    at++
  }
  if (!isWhole) throw new UnknownSyntax(`the template \`${template}\` has no counterpart`)
  return `(${result})`
}

/** A condition: `and`, `or`, `not`, or a pattern for a field or a template. */
export function conditionOf(match: Tree | undefined): string {
  if (match === undefined || !isMap(match)) return 'true'
  const all = (key: string) => itemsOf(below(match, key)).map(conditionOf)
  const [and, or] = [all('and'), all('or')]
  if (and.length > 0) return `(${and.join(' && ')})`
  const not = below(match, 'not')
  if (not !== undefined) return `!(${conditionOf(not)})`
  if (or.length > 0) return `(${or.join(' || ')})`
  const regexp = below(match, 'regexp')
  return regexp === undefined ? 'true' : patternTest(regexp)
}

function patternTest(regexp: Tree): string {
  const read = (key: string) => textOf(below(regexp, key))
  const template = read('template')
  const [, only] = /^\$\{(json[^}]*)\}$/.exec(template ?? '') ?? []
  const name = only ?? (template === undefined ? read('value') : undefined)
  const isMessage = name === 'MESSAGE' || name === 'MSG' || (name === undefined && template === undefined)
  if (name === undefined && template !== undefined)
    throw new UnknownSyntax(`the template \`${template}\` in a condition has no counterpart`)
  const text = isMessage ? `encode_json(${record})` : textOfField(name ?? '')
  return likeTest(text, read('pattern') ?? '', read('type') ?? 'pcre', textsOf(below(regexp, 'flags')))
}

/** A regular expression of PCRE as a literal. */
const regexIn = (body: string, isFolded = false) => `r'${isFolded ? '(?i)' : ''}${body.replaceAll("'", "\\'")}'`

const textOfField = (name: string) => {
  const at = fieldLiteral(fieldOf(name))
  return `(to_string(${at}) ?? encode_json(${at}))`
}

function likeTest(text: string, wanted: string, type: string, flags: readonly string[]): string {
  const known = ['ignore-case', 'substring', 'prefix', 'store-matches', 'unicode', 'utf8', 'global', 'disable-jit']
  const unknown = flags.find((flag) => !known.includes(flag))
  if (unknown !== undefined) throw new UnknownSyntax(`the flag \`${unknown}\` has no counterpart`)
  const isFolded = flags.includes('ignore-case')
  const escaped = wanted.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&')
  const starts = flags.includes('substring') ? '' : '\\A'
  const ends = flags.includes('substring') || flags.includes('prefix') ? '' : '\\z'
  const bodies: Readonly<Record<string, string>> = {
    pcre: wanted,
    string: `${starts}${escaped}${ends}`,
    substring: escaped,
    glob: `\\A(?s:${escaped.replaceAll('\\*', '.*').replaceAll('\\?', '.')})\\z`,
  }
  const body = Object.hasOwn(bodies, type) ? bodies[type] : undefined
  if (body === undefined) throw new UnknownSyntax(`the type \`${type}\` of a pattern has no counterpart`)
  return `match(${text}, ${regexIn(body, isFolded)})`
}

/** The steps of a filter of a flow. */
export function filterSteps(filter: Tree): readonly Step[] {
  if (!isMap(filter)) return []
  return [...filter.value].flatMap(([key, options]): Step[] => {
    if (key === 'id') return []
    if (key === 'match') return [{ type: 'filter', text: conditionOf(options) }]
    if (key === 'parser') return parserSteps(options)
    if (key !== 'rewrite') throw new UnknownSyntax(`the filter \`${key}\` has no counterpart`)
    const rules = isMap(options) ? [options] : itemsOf(options)
    return [
      {
        type: 'remap',
        text: rules.flatMap((rule) => (isMap(rule) ? [...rule.value].flatMap(ruleLines) : [])).join('\n'),
      },
    ]
  })
}

function parserSteps(options: Tree): Step[] {
  const parser = below(options, 'regexp')
  if (parser === undefined) throw new UnknownSyntax('of parsers, only `regexp` has a counterpart')
  const prefix = textOf(below(parser, 'prefix')) ?? ''
  const base = /^json\W$/.test(prefix) ? [] : fieldOf(`${prefix.replace(/\W$/, '')}`)
  const lines = templateLines(textOf(below(parser, 'template')) ?? '$MESSAGE', 'text')
  const calls = textsOf(below(parser, 'patterns')).map((each) => `parse_regex(text, ${regexIn(each)})`)
  const target = base.length === 0 ? '.' : fieldLiteral(base)
  const text = [
    ...lines,
    `parsed = ${[...calls, 'null'].join(' ?? ')}`,
    '%is_parsed = is_object(parsed)',
    `if is_object(parsed) { ${target} = merge(${base.length === 0 ? '.' : `object(${target}) ?? {}`}, object(parsed) ?? {}) }`,
  ].join('\n')
  return [
    { type: 'remap', text },
    { type: 'filter', text: '%is_parsed == true' },
  ]
}

/** Statements of a rewrite rule. */
function ruleLines([key, rule]: readonly [string, Tree]): string[] {
  const read = (name: string) => textOf(below(rule, name)) ?? ''
  const condition = below(rule, 'condition')
  const lines = rewriteLines(key, read, rule)
  return condition === undefined ? lines : [`if ${conditionOf(condition)} {`, ...lines.map((line) => `  ${line}`), '}']
}

function rewriteLines(key: string, read: (name: string) => string, rule: Tree): string[] {
  if (key === 'set') return [...templateLines(read('value'), 'text'), `${fieldLiteral(fieldOf(read('field')))} = text`]
  if (key === 'unset') return [`del(${fieldLiteral(fieldOf(read('field')))})`]
  if (key === 'rename') {
    const [from, to] = [fieldOf(read('oldName')), fieldOf(read('newName'))].map(fieldLiteral)
    return [`if exists(${from}) { ${to} = del(${from}) }`]
  }
  if (key === 'group_unset') {
    const [, parent, last] = /^(.*?)(\W)?\*$/s.exec(read('pattern')) ?? []
    if (parent === undefined || /[*?]/.test(parent))
      throw new UnknownSyntax(`the pattern \`${read('pattern')}\` of names has no counterpart`)
    const path = fieldOf(parent)
    if (last !== undefined) return [`del(${fieldLiteral(path)})`]
    const [name = '', ...owner] = path.toReversed()
    const at = owner.length === 0 ? '.' : fieldLiteral(owner.toReversed())
    return [
      `if is_object(${at}) { ${at} = filter(object!(${at})) -> |key, _value| { !starts_with(key, ${textLiteral(name)}) } }`,
    ]
  }
  if (key !== 'subst') throw new UnknownSyntax(`the rule \`${key}\` has no counterpart`)
  const at = fieldLiteral(fieldOf(read('field')))
  const flags = textsOf(below(rule, 'flags'))
  const type = read('type') || 'pcre'
  if (!['pcre', 'string'].includes(type))
    throw new UnknownSyntax(`the type \`${type}\` of a pattern has no counterpart`)
  const body = type === 'string' ? read('pattern').replace(/[\\^$.*+?()[\]{}|]/g, '\\$&') : read('pattern')
  const regex = regexIn(body, flags.includes('ignore-case'))
  const by = read('replace')
    .replace(/\$(?!\{?\d)/g, '$$$$')
    .replace(/\$(\d)/g, '$${$1}')
  const count = flags.includes('global') ? '' : ', count: 1'
  return [`if is_string(${at}) { ${at} = replace(string!(${at}), ${regex}, ${textLiteral(by)}${count}) }`]
}

type Report = (place: Place, subject: string, reason: string, nearest: string, kind: Partial<Gap>) => void

/** The parts of an output that its destination has in common with the others. */
class Making {
  readonly options: Tree
  readonly report: Report
  readonly #key: string
  readonly #secretOf: (tree: Tree | undefined) => string | undefined
  readonly #parameters: (readonly [string, string])[] = []

  constructor(key: string, options: Tree, secretOf: (tree: Tree | undefined) => string | undefined, report: Report) {
    this.options = options
    this.report = report
    this.#key = key
    this.#secretOf = secretOf
    for (const [name, , at] of pairsOf(options)) {
      if (knownOptions.has(name)) continue
      const reason = `the option \`${name}\` has no counterpart`
      report(at, `${key}: ${name}`, reason, 'Set the same in the options of the sink.', {})
    }
    this.#security()
  }

  #security(): void {
    const key = this.#key
    const tls = { ca_file: 'ca_file', cert_file: 'client_cert', key_file: 'client_key' }
    for (const [name, , at] of pairsOf(below(this.options, 'tls'))) {
      if (Object.hasOwn(tls, name)) this.add(tls[name as keyof typeof tls], this.secret('tls', name))
      else if (name === 'peer_verify') this.add(verificationNames[key] ?? 'ssl_verify', verification(key, textOf(at)))
      else {
        const reason = `the option \`${name}\` has no counterpart`
        this.report(at, `${key}: tls.${name}`, reason, 'Set `tls` of the sink.', {})
      }
    }
  }

  read(name: string): string | undefined {
    return textOf(below(this.options, name))
  }

  secret(...names: readonly string[]): string | undefined {
    return this.#secretOf(below(this.options, ...names))
  }

  add(name: string, value: string | undefined): void {
    if (value !== undefined && value !== '') this.#parameters.push([name, value])
  }

  step(text: string): Element {
    const filter = element('filter', this.options, '**', [['@type', 'syslog-ng template']])
    return { ...filter, after: [{ type: 'remap', text }] }
  }

  /** A step that makes the record what a template for JSON writes; without one, the record stays whole. */
  whole(template: string | undefined): Element {
    const object = template === undefined ? record : objectOf(template.replace(/\\n$/, '').trim())
    return this.step(`. = merge(${object}, { "timestamp": .timestamp })`)
  }

  match(type: string, children: readonly Element[] = []): Element {
    const match = element('match', this.options, '**', [['@type', type], ...this.#parameters])
    return { ...match, children: [...bufferOf(this.options), ...children] }
  }
}

/** The option of a plugin for the check of the certificate, other than `ssl_verify`. */
const verificationNames: Readonly<Record<string, string>> = {
  http: 'tls_verify_mode',
  splunk_hec_event: 'insecure_ssl',
}

/** Whether the certificate of the server is checked, as the plugins say it. */
function verification(key: string, text: string | undefined): string | undefined {
  const isOff = text !== undefined && /^(?:false|no|optional-\w+|required-untrusted)$/.test(text)
  if (!isOff) return undefined
  return key === 'http' ? 'none' : key === 'splunk_hec_event' ? 'true' : 'false'
}

/** An output as elements: a step for the record, and the match of the destination; undefined for a destination without a counterpart. */
export function outputElements(
  key: string,
  options: Tree,
  secretOf: (tree: Tree | undefined) => string | undefined,
  report: Report,
): readonly Element[] | undefined {
  const make = Object.hasOwn(destinations, key) ? destinations[key] : undefined
  return make?.(new Making(key, options, secretOf, report))
}

function searchElements(making: Making): readonly Element[] {
  const prefix = making.read('logstash_prefix')
  const date = ['YEAR', 'MONTH', 'DAY'].map((name) => `\${${name}}`).join('.')
  const separator = making.read('logstash_prefix_separator') ?? '-'
  const index =
    prefix === undefined ? making.read('index') : `${prefix}${separator}${making.read('logstash_suffix') ?? date}`
  making.add('hosts', (making.read('url') ?? '').replace(/\/_bulk\/?$/, ''))
  making.add('user', making.read('user'))
  making.add('password', making.secret('password'))
  making.add('index_name', fluentdTemplate(index ?? 'logs'))
  if (making.read('custom_id') !== undefined) throw new UnknownSyntax('`custom_id` has no counterpart')
  if (making.read('template') === undefined) {
    making.add('include_timestamp', 'true')
    const reason = 'the documents have the fields of the record; syslog-ng sends the text of the record in `MESSAGE`'
    const nearest = 'Change the queries at the destination.'
    making.report(making.options, 'elasticsearch: template', reason, nearest, {})
  }
  return [making.whole(making.read('template')), making.match('elasticsearch')]
}

function httpElements(making: Making): readonly Element[] {
  const isList =
    making.read('delimiter') === ',' && making.read('body-prefix') === '[' && making.read('body-suffix') === ']'
  const headers = textsOf(below(making.options, 'headers')).map((each) => {
    const at = each.indexOf(':')
    return [each.slice(0, at).trim(), each.slice(at + 1).trim()] as const
  })
  making.add('endpoint', making.read('url'))
  making.add('http_method', making.read('method')?.toLowerCase())
  if (headers.length > 0) making.add('headers', JSON.stringify(Object.fromEntries(headers)))
  if (isList) making.add('json_array', 'true')
  const user = making.read('user')
  const login = [
    ['method', 'basic'],
    ['username', user ?? ''],
    ['password', making.secret('password') ?? ''],
  ] as const
  const auth = user === undefined ? [] : [element('auth', making.options, '', login)]
  return [making.whole(making.read('body')), making.match('http', auth)]
}

function splunkElements(making: Making): readonly Element[] {
  making.add('full_url', `${(making.read('url') ?? '').replace(/\/+$/, '')}/services/collector/event`)
  making.add('hec_token', making.secret('token'))
  for (const name of ['index', 'source', 'sourcetype', 'host']) making.add(name, making.read(name))
  return [making.whole(making.read('event') ?? making.read('template')), making.match('splunk_hec')]
}

function fileElements(making: Making): readonly Element[] {
  making.add('path', fluentdTemplate(making.read('path') ?? '/var/log/messages'))
  const format = element('format', making.options, '', [['@type', 'json']])
  return [making.whole(making.read('template')), making.match('file', [format])]
}

/** The step gives the record the labels and the line alone, so that the line is what remains without the labels. */
function lokiElements(making: Making): readonly Element[] {
  const { options } = making
  const labels = pairsOf(below(options, 'labels')).map(([name, value], index) => ({
    name,
    value,
    field: `label_${index}`,
  }))
  const lines = [
    ...labels.flatMap(({ value, field }) => templateLines(value, field)),
    ...templateLines(making.read('template') ?? '$ISODATE $HOST $MSGHDR$MSG', 'line'),
  ]
  const members = labels.map(({ field }) => `"${field}": ${field}, `).join('')
  const [, host = 'loki', port = ''] = /^(?:\w+:\/\/)?([^:/]+)(?::(\d+))?/.exec(making.read('url') ?? '') ?? []
  making.add('url', `http://${host}:3100`)
  making.add('tenant', making.read('tenant-id'))
  making.add('drop_single_key', 'true')
  making.add('line_format', 'json')
  const reason = `the sink uses HTTP on port 3100; the output uses gRPC${port === '' ? '' : ` on port ${port}`}`
  const nearest = 'Correct `endpoint` of the sink if Loki listens on another port.'
  making.report(options, 'loki: url', reason, nearest, {})
  const own = labels.map(({ name, field }) => [name, `$.${field}`] as const)
  return [
    making.step([...lines, `. = { ${members}"line": line, "timestamp": .timestamp }`].join('\n')),
    making.match('loki', own.length === 0 ? [] : [element('label', options, '', own)]),
  ]
}

const destinations: Readonly<Record<string, (making: Making) => readonly Element[]>> = {
  elasticsearch: searchElements,
  opensearch: searchElements,
  http: httpElements,
  splunk_hec_event: splunkElements,
  file: fileElements,
  loki: lokiElements,
}

/** Fields and dates as Fluentd has them in names. */
function fluentdTemplate(template: string): string {
  return template.replace(/\$\{([^}]*)\}|\$([A-Z_]+)/g, (_, braced?: string, plain?: string) => {
    const name = braced ?? plain ?? ''
    const format = Object.hasOwn(dates, name) ? dates[name] : undefined
    return format ?? `\${$.${fieldOf(name).join('.')}}`
  })
}

function bufferOf(options: Tree): readonly Element[] {
  const seconds = textOf(below(options, 'batch-timeout'))
  const size = textOf(below(options, 'disk_buffer', 'disk_buf_size'))
  const parameters: (readonly [string, string])[] = [
    ...(size === undefined
      ? []
      : ([
          ['@type', 'file'],
          ['total_limit_size', size],
        ] as const)),
    ...(seconds === undefined
      ? []
      : ([['flush_interval', `${Math.max(1, Math.round(Number(seconds) / 1000))}s`]] as const)),
  ]
  return parameters.length === 0 ? [] : [element('buffer', options, '', parameters)]
}

const knownOptions: ReadonlySet<string> = new Set(
  [
    'url index type custom_id logstash_prefix logstash_prefix_separator logstash_suffix template user password tls headers',
    'body body-prefix body-suffix delimiter method batch-lines batch-bytes batch-timeout disk_buffer workers persist_name',
    'log-fifo-size retries time_reopen timeout user-agent token event source sourcetype host path labels timestamp tenant-id auth',
    'create_dirs dir_perm dir_owner',
  ].flatMap((words) => words.split(' ')),
)
