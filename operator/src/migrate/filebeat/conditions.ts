// Conditions of processors and outputs as conditions of programs.

import { fieldLiteral, textLiteral } from '@penstock/agent/config'
import type { Report } from '../loki/context.ts'
import { textExpression } from '../loki/fields.ts'
import { isList, isMap, itemsOf, type Tree, textOf, textsOf } from '../loki/tree.ts'
import { decimal, regexLiteral } from '../otel/text.ts'

export const fieldOf = (name: string): string => fieldLiteral(name === '@timestamp' ? ['timestamp'] : name.split('.'))

export const textOfField = (name: string): string => `(to_string(${fieldOf(name)}) ?? "")`

/** Converts a condition; reports a gap and returns undefined if it has no counterpart. */
export function conditionOf(tree: Tree | undefined, report: Report): string | undefined {
  if (!isMap(tree)) return undefined
  const tests = [...tree.value].map(([kind, item]) => testOf(kind, item, report))
  if (tests.some((test) => test === undefined) || tests.length === 0) return undefined
  return tests.length === 1 ? tests[0] : `(${tests.join(' && ')})`
}

function testOf(kind: string, tree: Tree, report: Report): string | undefined {
  const fields = leaves(tree)
  const all = (make: (name: string, value: Tree) => string | undefined) => {
    const tests = fields.map(([name, value]) => make(name, value))
    return tests.length === 0 || tests.some((test) => test === undefined)
      ? refused(kind, tree, report)
      : `(${tests.join(' && ')})`
  }
  switch (kind) {
    case 'equals':
      return all((name, value) => `${fieldOf(name)} == ${scalar(value)}`)
    case 'contains':
      return all((name, value) => {
        const texts = textsOf(value).map(
          (text) =>
            `(contains(to_string(${fieldOf(name)}) ?? "", ${textLiteral(text)}) || includes(array(${fieldOf(name)}) ?? [], ${textLiteral(text)}))`,
        )
        return texts.length === 1 ? texts[0] : `(${texts.join(' || ')})`
      })
    case 'regexp':
      return all((name, value) => `match(${textOfField(name)}, ${regexLiteral(textOf(value) ?? '')})`)
    case 'range': {
      const operators: Readonly<Record<string, string>> = { gte: '>=', gt: '>', lte: '<=', lt: '<' }
      return all((path, value) => {
        const cut = path.lastIndexOf('.')
        const operator = operators[path.slice(cut + 1)]
        const limit = Number(textOf(value))
        if (operator === undefined || Number.isNaN(limit)) return undefined
        const field = fieldOf(path.slice(0, cut))
        return `(exists(${field}) && (to_float(${field}) ?? 0.0) ${operator} ${Number.isInteger(limit) ? `${limit}.0` : limit})`
      })
    }
    case 'has_fields': {
      const names = textsOf(tree)
      return names.length === 0
        ? refused(kind, tree, report)
        : `(${names.map((name) => `exists(${fieldOf(name)})`).join(' && ')})`
    }
    case 'network':
      return all((name, value) => {
        const ranges = textsOf(value).flatMap((text) => networks[text] ?? (text.includes('/') ? [text] : []))
        return ranges.length === 0
          ? undefined
          : `(ip_cidr_contains(${JSON.stringify(ranges)}, ${textOfField(name)}) ?? false)`
      })
    case 'and':
    case 'or': {
      const tests = itemsOf(tree).map((item) => conditionOf(item, report))
      if (tests.length === 0 || tests.some((test) => test === undefined)) return undefined
      return `(${tests.join(kind === 'and' ? ' && ' : ' || ')})`
    }
    case 'not': {
      const test = conditionOf(tree, report)
      return test === undefined ? undefined : `!(${test})`
    }
    default:
      return refused(kind, tree, report)
  }
}

function refused(kind: string, tree: Tree, report: Report): undefined {
  report.gap(
    tree,
    `condition ${kind}`,
    'the condition has no counterpart',
    'Write the step as a remap transform with `if`, or as a filter transform.',
  )
  return undefined
}

const networks: Readonly<Record<string, readonly string[]>> = {
  private: ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', 'fd00::/8'],
  loopback: ['127.0.0.0/8', '::1/128'],
  link_local_unicast: ['169.254.0.0/16', 'fe80::/10'],
  multicast: ['224.0.0.0/4', 'ff00::/8'],
}

/** Field names joined with dots, and their values. */
export function leaves(tree: Tree, prefix = ''): readonly (readonly [string, Tree])[] {
  if (!isMap(tree)) return []
  return [...tree.value].flatMap(([name, value]) =>
    isMap(value) ? leaves(value, `${prefix}${name}.`) : [[`${prefix}${name}`, value] as const],
  )
}

function scalar({ value, isNumber }: Tree): string {
  if (typeof value === 'boolean') return String(value)
  if (isNumber !== true) return textLiteral(String(value))
  const text = String(value)
  return /^-?(?:0|[1-9]\d*)(?:\.\d+)?$/.test(text) ? text : decimal(Number(text))
}

/** A value that a program gives to a field: variables in its text are read from the environment. */
export function assigned(tree: Tree, subject: string, report: Report): string {
  if (isMap(tree)) {
    const members = [...tree.value].map(
      ([name, item]) => `${textLiteral(name)}: ${assigned(item, `${subject}.${name}`, report)}`,
    )
    return members.length === 0 ? '{}' : `{ ${members.join(', ')} }`
  }
  if (isList(tree)) return `[${tree.value.map((item) => assigned(item, subject, report)).join(', ')}]`
  if (tree.value === null) return 'null'
  if (typeof tree.value !== 'string' || tree.isNumber === true) return scalar(tree)
  report.variables(tree, subject, tree.value)
  return textExpression(tree.value, report.readsEnvironment, textLiteral, nodeName)
}

const nodeName = '(string(%orchestrator.pod_node_name) ?? get_hostname() ?? "")'

/** `%{[field]}`, `%{+yyyy.MM.dd}` in a text, as a template; undefined if it contains other placeholders. */
export function templateOf(text: string): string | undefined {
  let isKnown = true
  const template = text.replaceAll('%', '%%').replace(/%%\{([^}]*)\}/g, (_, inner: string) => {
    const field = /^\[([^\]]+)\](?::.*)?$/.exec(inner)?.[1]
    if (field !== undefined) return `{{ ${fieldOf(field).slice(1)} }}`
    const date = /^\+([yMdHmsx.\-_/:\s]+)$/.exec(inner)?.[1]
    if (date === undefined) isKnown = false
    return joda(date ?? '')
  })
  return isKnown ? template : undefined
}

/** The same text as an expression of a program; undefined if it contains other placeholders. */
export function expressionOf(text: string): string | undefined {
  const parts = text.split(/(%\{[^}]*\})/).filter((part) => part !== '')
  const expressions = parts.map((part) => {
    const inner = /^%\{(.*)\}$/.exec(part)?.[1]
    if (inner === undefined) return textLiteral(part)
    const field = /^\[([^\]]+)\](?::(.*))?$/.exec(inner)
    if (field?.[1] !== undefined) {
      const byDefault = textLiteral(field[2] ?? '')
      return `(to_string(${fieldOf(field[1])} || ${byDefault}) ?? ${byDefault})`
    }
    const date = /^\+([yMdHmsx.\-_/:\s]+)$/.exec(inner)?.[1]
    return date === undefined
      ? undefined
      : `(format_timestamp(timestamp(.timestamp) ?? now(), ${textLiteral(joda(date))}) ?? "")`
  })
  return expressions.includes(undefined) ? undefined : expressions.join(' + ') || '""'
}

function joda(format: string): string {
  return format.replace(
    /yyyy|xxxx|yy|MM|dd|HH|mm|ss/g,
    (item) => ({ yyyy: '%Y', xxxx: '%G', yy: '%y', MM: '%m', dd: '%d', HH: '%H', mm: '%M', ss: '%S' })[item] ?? item,
  )
}
