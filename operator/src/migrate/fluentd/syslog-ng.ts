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
export function fieldOf(name: string): readonly string[] {
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
export function templateLines(template: string, variable: string): string[] {
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
export function objectOf(template: string): string {
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

/** An output as elements: a step for the record, and the match of the destination; undefined for a destination without a counterpart. */
export function outputElements(
  key: string,
  options: Tree,
  secretOf: (tree: Tree | undefined) => string | undefined,
  report: (place: Place, subject: string, reason: string, nearest: string, kind: Partial<Gap>) => void,
): readonly Element[] | undefined {
  const read = (name: string) => textOf(below(options, name))
  const parameters: (readonly [string, string])[] = []
  const add = (name: string, value: string | undefined) => {
    if (value !== undefined && value !== '') parameters.push([name, value])
  }
  const step = (text: string): Element => ({
    ...element('filter', options, '**', [['@type', 'syslog-ng template']]),
    after: [{ type: 'remap', text }],
  })
  const match = (type: string, children: readonly Element[] = []): Element => ({
    ...element('match', options, '**', [['@type', type], ...parameters]),
    children: [...bufferOf(options), ...children],
  })
  for (const [name, , at] of destinations.has(key) ? pairsOf(options) : []) {
    if (knownOptions.has(name)) continue
    report(
      at,
      `${key}: ${name}`,
      `the option \`${name}\` has no counterpart`,
      'Set the same in the options of the sink.',
      {},
    )
  }
  const tls = { ca_file: 'ca_file', cert_file: 'client_cert', key_file: 'client_key' }
  for (const [name, , at] of pairsOf(below(options, 'tls'))) {
    if (Object.hasOwn(tls, name)) add(tls[name as keyof typeof tls], secretOf(below(options, 'tls', name)))
    else if (name === 'peer_verify')
      add(
        key === 'http' ? 'tls_verify_mode' : key === 'splunk_hec_event' ? 'insecure_ssl' : 'ssl_verify',
        verification(key, textOf(at)),
      )
    else report(at, `${key}: tls.${name}`, `the option \`${name}\` has no counterpart`, 'Set `tls` of the sink.', {})
  }
  add('password', secretOf(below(options, 'password')))
  const whole = (template: string | undefined) => {
    const lines = template === undefined ? record : objectOf(template.replace(/\\n$/, '').trim())
    return `. = merge(${lines}, { "timestamp": .timestamp })`
  }
  if (key === 'elasticsearch' || key === 'opensearch') {
    const prefix = read('logstash_prefix')
    const suffix = read('logstash_suffix') ?? ['$', '{YEAR}.$', '{MONTH}.$', '{DAY}'].join('')
    const index = prefix === undefined ? read('index') : `${prefix}${read('logstash_prefix_separator') ?? '-'}${suffix}`
    add('hosts', (read('url') ?? '').replace(/\/_bulk\/?$/, ''))
    add('user', read('user'))
    add('index_name', fluentdTemplate(index ?? 'logs'))
    if (read('template') === undefined) {
      add('include_timestamp', 'true')
      const reason = 'the documents have the fields of the record; syslog-ng sends the text of the record in `MESSAGE`'
      report(options, `${key}: template`, reason, 'Change the queries at the destination.', { isReplaced: true })
    }
    return [step(whole(read('template'))), match('elasticsearch')]
  }
  if (key === 'http') {
    const body = read('body')
    const isList = read('delimiter') === ',' && read('body-prefix') === '[' && read('body-suffix') === ']'
    const headers = textsOf(below(options, 'headers')).map((each) => each.split(/:\s*(.*)/s) as [string, string])
    add('endpoint', read('url'))
    add('http_method', read('method')?.toLowerCase())
    if (headers.length > 0)
      add('headers', JSON.stringify(Object.fromEntries(headers.map(([name, value]) => [name, value]))))
    if (isList) add('json_array', 'true')
    const login = [
      ['method', 'basic'],
      ['username', read('user') ?? ''],
      ['password', secretOf(below(options, 'password')) ?? ''],
    ] as const
    const own = parameters.filter(([name]) => name !== 'password')
    parameters.length = 0
    parameters.push(...own)
    return [step(whole(body)), match('http', read('user') === undefined ? [] : [element('auth', options, '', login)])]
  }
  if (key === 'splunk_hec_event') {
    add('full_url', `${(read('url') ?? '').replace(/\/+$/, '')}/services/collector/event`)
    add('hec_token', secretOf(below(options, 'token')))
    for (const name of ['index', 'source', 'sourcetype', 'host']) add(name, read(name))
    return [step(whole(read('event') ?? read('template'))), match('splunk_hec')]
  }
  if (key === 'file') {
    add('path', fluentdTemplate(read('path') ?? '/var/log/messages'))
    return [step(whole(read('template'))), match('file', [element('format', options, '', [['@type', 'json']])])]
  }
  if (key !== 'loki') return undefined
  return lokiElements(options, read, step, (children) => match('loki', children), add, report)
}

/** Whether the certificate of the server is checked, as the plugins say it. */
function verification(key: string, text: string | undefined): string | undefined {
  const isOff = text !== undefined && /^(?:false|no|optional-\w+|required-untrusted)$/.test(text)
  if (!isOff) return undefined
  return key === 'http' ? 'none' : key === 'splunk_hec_event' ? 'true' : 'false'
}

/** The step gives the record the labels and the line alone, so that the line is what remains without the labels. */
function lokiElements(
  options: Tree,
  read: (name: string) => string | undefined,
  step: (text: string) => Element,
  match: (children: readonly Element[]) => Element,
  add: (name: string, value: string | undefined) => void,
  report: (place: Place, subject: string, reason: string, nearest: string, kind: Partial<Gap>) => void,
): readonly Element[] {
  const labels = pairsOf(below(options, 'labels')).map(([name, value], index) => ({
    name,
    value,
    field: `label_${index}`,
  }))
  const lines = [
    ...labels.flatMap(({ value, field }) => templateLines(value, field)),
    ...templateLines(read('template') ?? '$ISODATE $HOST $MSGHDR$MSG', 'line'),
  ]
  const members = labels.map(({ field }) => `"${field}": ${field}, `).join('')
  const [, host = 'loki', port = ''] = /^(?:\w+:\/\/)?([^:/]+)(?::(\d+))?/.exec(read('url') ?? '') ?? []
  add('url', `http://${host}:3100`)
  add('tenant', read('tenant-id'))
  add('drop_single_key', 'true')
  add('line_format', 'json')
  const reason = `the sink uses HTTP on port 3100; the output uses gRPC${port === '' ? '' : ` on port ${port}`}`
  report(options, 'loki: url', reason, 'Correct `endpoint` of the sink if Loki listens on another port.', {
    isReplaced: true,
  })
  const own = labels.map(({ name, field }) => [name, `$.${field}`] as const)
  return [
    step([...lines, `. = { ${members}"line": line, "timestamp": .timestamp }`].join('\n')),
    match(own.length === 0 ? [] : [element('label', options, '', own)]),
  ]
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

const destinations: ReadonlySet<string> = new Set([
  'elasticsearch',
  'opensearch',
  'http',
  'loki',
  'splunk_hec_event',
  'file',
])

const knownOptions: ReadonlySet<string> = new Set(
  [
    'url index type custom_id logstash_prefix logstash_prefix_separator logstash_suffix template user password tls headers',
    'body body-prefix body-suffix delimiter method batch-lines batch-bytes batch-timeout disk_buffer workers persist_name',
    'log-fifo-size retries time_reopen timeout user-agent token event source sourcetype host path labels timestamp tenant-id auth',
    'create_dirs dir_perm dir_owner',
  ].flatMap((words) => words.split(' ')),
)
