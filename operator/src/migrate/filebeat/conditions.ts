// Conditions of processors and outputs as conditions of programs.

import { fieldLiteral, textLiteral } from '@penstock/agent/config'
import { escapedText } from '../escape.ts'
import type { Report } from '../loki/context.ts'
import { isList, isMap, itemsOf, type Tree, textOf, textsOf } from '../loki/tree.ts'
import { decimal, regexLiteral } from '../otel/text.ts'
import { networkTest } from './networks.ts'
import { isOfFilebeat, ownFieldReport } from './own-fields.ts'
import { podValue, podVariable } from './pod-values.ts'
import { reportVariables, textExpression, valueExpression } from './variables.ts'

/** Fields with another place in events: the time of the event is where a field `timestamp` of its own would be. */
const places: Readonly<Record<string, readonly string[]>> = {
  '@timestamp': ['timestamp'],
  timestamp: ['log_timestamp'],
}

/** Objects whose names may contain dots. */
const labelled = /^(kubernetes\.(?:labels|annotations|namespace_labels|node\.labels))\.(.+)$/

/** The path of a field. Metadata of Filebeat, which outputs read and do not send, becomes metadata of the event. */
export function fieldOf(name: string): string {
  const [, above, label] = labelled.exec(name) ?? []
  if (above !== undefined && label !== undefined) return fieldLiteral([...above.split('.'), label])
  const [first = '', ...rest] = places[name] ?? name.split('.')
  return first === '@metadata' ? `%${fieldLiteral(['metadata', ...rest]).slice(1)}` : fieldLiteral([first, ...rest])
}

export const textOfField = (name: string): string => `(to_string(${fieldOf(name)}) ?? "")`

/** The field as a text; empty for other values, on which tests of texts are false. */
const onlyText = (name: string): string => `(string(${fieldOf(name)}) ?? "")`

/** A test of a text, or of the texts in a list. */
function textTest(name: string, ofText: string, ofItems: string): string {
  const list = `match_array(array(${fieldOf(name)}) ?? [], ${ofItems})`
  return `(${ofText} || ${list})`
}

/** Kinds of conditions in the order in which Filebeat looks for them. It uses only the first one that a table has. */
const kinds = ['equals', 'contains', 'regexp', 'range', 'has_fields', 'network', 'is_empty', 'or', 'and', 'not']

/** Converts a condition; reports a gap and returns undefined if it has no counterpart. */
export function conditionOf(tree: Tree | undefined, report: Report): string | undefined {
  if (!isMap(tree)) return undefined
  const given = [...tree.value.keys()].map(String).toSorted((one, other) => placeOf(one) - placeOf(other))
  const [kind, ...ignored] = given
  const item = kind === undefined ? undefined : tree.value.get(kind)
  if (kind === undefined || item === undefined) return undefined
  const unknown = ignored.find((name) => !kinds.includes(name))
  if (unknown !== undefined) return refused(unknown, tree.value.get(unknown) ?? tree, report)
  if (ignored.length > 0) {
    const reason = `Filebeat uses only \`${kind}\` of this condition, and ignores \`${ignored.join('`, `')}\``
    report.replaced(tree, 'condition', reason, 'Combine conditions with `and` or `or`.')
  }
  return testOf(kind, item, report)
}

function placeOf(kind: string): number {
  const place = kinds.indexOf(kind)
  return place < 0 ? kinds.length : place
}

/** The items of a list. Filebeat reads a single table as a list with one item. */
const listedIn = (tree: Tree): readonly Tree[] => (isMap(tree) ? [tree] : itemsOf(tree))

function testOf(kind: string, tree: Tree, report: Report): string | undefined {
  const fields = leaves(tree)
  const all = (make: (name: string, value: Tree) => string | undefined) => {
    const listed = fields.find(([, value]) => kind !== 'network' && isList(value) && value.value.length > 0)
    if (listed !== undefined) return ofList(kind, listed, report)
    const own = fields.find(([name]) => isOfFilebeat(name))
    if (own !== undefined) return ofFilebeat(kind, own, report)
    const variable = fields.find(([, value]) => kind !== 'equals' && textsOf(value).some((text) => /\$\{\w/.test(text)))
    if (variable !== undefined) return ofVariable(kind, variable, report)
    const tests = fields.map(([name, value]) => make(name, value))
    return tests.length === 0 || tests.some((test) => test === undefined)
      ? refused(kind, tree, report)
      : `(${tests.join(' && ')})`
  }
  switch (kind) {
    case 'equals':
      return all((name, value) => `${fieldOf(name)} == ${scalarWithVariables(value, report)}`)
    case 'contains':
      return all((name, value) => {
        const text = textOf(value) ?? ''
        return text === ''
          ? textTest(name, `${fieldOf(name)} == ""`, regexLiteral('^$'))
          : textTest(name, `contains(${onlyText(name)}, ${textLiteral(text)})`, regexLiteral(escapedText(text)))
      })
    case 'regexp':
      return all((name, value) => {
        const regex = regexLiteral(textOf(value) ?? '')
        return textTest(name, `(is_string(${fieldOf(name)}) && match(${onlyText(name)}, ${regex}))`, regex)
      })
    case 'range': {
      const operators: Readonly<Record<string, string>> = { gte: '>=', gt: '>', lte: '<=', lt: '<' }
      return all((path, value) => {
        const cut = path.lastIndexOf('.')
        const operator = operators[path.slice(cut + 1)]
        const limit = Number(textOf(value))
        if (operator === undefined || Number.isNaN(limit)) return undefined
        const field = fieldOf(path.slice(0, cut))
        // A value that is not a number, such as a text with digits, is outside of every range.
        const beyond = decimal(operator.startsWith('>') ? limit - 1 : limit + 1)
        const isNumber = `(is_integer(${field}) || is_float(${field}))`
        return `(${isNumber} && (to_float(${field}) ?? ${beyond}) ${operator} ${decimal(limit)})`
      })
    }
    case 'has_fields': {
      const names = textsOf(tree)
      const own = names.find(isOfFilebeat)
      if (own !== undefined) return ofFilebeat(kind, [own, tree], report)
      return names.length === 0
        ? refused(kind, tree, report)
        : `(${names.map((name) => `exists(${fieldOf(name)})`).join(' && ')})`
    }
    case 'is_empty': {
      const name = textOf(tree) ?? ''
      if (isOfFilebeat(name)) return ofFilebeat(kind, [name, tree], report)
      const field = fieldOf(name)
      return `(exists(${field}) && (is_null(${field}) || ${field} == "" || ${field} == {}))`
    }
    case 'network':
      return all((name, value) => networkTest(textsOf(value), onlyText(name)))
    case 'and':
    case 'or': {
      const tests = listedIn(tree).map((item) => conditionOf(item, report))
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

/** Filebeat reads the items of a list as texts for fields whose names are numbers. No event has such fields. */
function ofList(kind: string, [name, tree]: readonly [string, Tree], report: Report): string {
  const reason = `Filebeat compares the items of a list with \`${name}.0\` and so on, which no event has, so the condition is never true`
  report.replaced(
    tree,
    `condition ${kind}: ${name}`,
    reason,
    'If one of several texts must be there, write a condition for each below `or`.',
  )
  return '(false)'
}

function ofVariable(kind: string, [name, tree]: readonly [string, Tree], report: Report): undefined {
  const reason = 'a resource is literal text, and the variable has no value here'
  report.gap(tree, `condition ${kind}: ${name}`, reason, 'Replace the variable with its value.')
  return undefined
}

function scalarWithVariables(tree: Tree, report: Report): string {
  return typeof tree.value === 'string' && /\$\{\w/.test(tree.value)
    ? `(${assigned(tree, 'condition equals', report)})`
    : scalar(tree)
}

function ofFilebeat(kind: string, [name, tree]: readonly [string, Tree], report: Report): undefined {
  const { reason, nearest } = ownFieldReport(name)
  report.gap(tree, `condition ${kind}: ${name}`, reason, nearest)
  return undefined
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

/**
 * A value that a program gives to a field: variables in its text are read from the environment.
 * @param isText whether a number or a boolean in a variable becomes a text
 */
export function assigned(tree: Tree, subject: string, report: Report, isText = false): string {
  if (isMap(tree)) {
    const members = [...tree.value].map(
      ([name, item]) => `${textLiteral(name)}: ${assigned(item, `${subject}.${name}`, report)}`,
    )
    return members.length === 0 ? '{}' : `{ ${members.join(', ')} }`
  }
  if (isList(tree)) return `[${tree.value.map((item) => assigned(item, subject, report, isText)).join(', ')}]`
  if (tree.value === null) return 'null'
  if (typeof tree.value !== 'string' || tree.isNumber === true) return scalar(tree)
  reportVariables(tree, subject, tree.value, report)
  for (const [variable] of tree.value.matchAll(/\$\{[^}]*\}/g)) {
    if (podValue(variable) !== undefined || /^\$\{[A-Za-z_]\w*[:}]/.test(variable)) continue
    const reason = 'events do not have the value of the variable'
    report.gap(tree, `${subject}: ${variable}`, reason, 'Set the field in a remap transform.')
  }
  const parts = tree.value.split(podVariable).filter((part) => part !== '')
  if (!isText && parts.length === 1 && podValue(tree.value) === undefined)
    return valueExpression(tree.value, report.readsEnvironment)
  const expressions = parts.map((part) => podValue(part) ?? textExpression(part, report.readsEnvironment))
  return expressions.join(' + ') || '""'
}

/**
 * Statements that set a field to a value. Filebeat merges an object into one that is there, so each of its members is set on its own.
 * @param name the path of the field
 */
export function assignments(name: string, tree: Tree, subject: string, report: Report): readonly string[] {
  if (!isMap(tree)) return [`${fieldOf(name)} = ${assigned(tree, subject, report)}`]
  if (tree.value.size === 0) return [`if !is_object(${fieldOf(name)}) { ${fieldOf(name)} = {} }`]
  return [...tree.value].flatMap(([key, item]) => assignments(`${name}.${key}`, item, `${subject}.${key}`, report))
}
