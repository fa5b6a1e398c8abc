// Compiles label selectors in the syntax of the Kubernetes API, such as `app=web,tier in (a,b),!legacy`, into predicates over labels.

import { PenstockError } from '../errors.ts'

export type LabelTest = (labels: Readonly<Record<string, unknown>>) => boolean

const term =
  /^\s*(?:(!)\s*([^\s!=,()]+)|([^\s!=,()]+)\s+(in|notin)\s*\(([^()]*)\)|([^\s!=,()]+)\s*(==|=|!=)\s*([^\s!=,()]*)|([^\s!=,()]+))\s*(?:,|$)/

/** Throws PEN_CONFIG_INVALID for an invalid selector. An empty text selects everything. */
export function compileSelector(text: string): LabelTest {
  const tests: LabelTest[] = []
  let rest = text.trim()
  while (rest !== '') {
    const match = term.exec(rest)
    if (match === null) {
      throw new PenstockError(
        'PEN_CONFIG_INVALID',
        `"${text}" is not a valid label selector: expected a condition such as \`app=web\` at "${rest}".`,
      )
    }
    tests.push(testOf(match))
    rest = rest.slice(match[0].length)
  }
  return (labels) => tests.every((test) => test(labels))
}

function testOf(match: RegExpExecArray): LabelTest {
  const [, not, absent, setKey, operator, list, key, equals, value, present] = match
  if (not !== undefined) return (labels) => labels[absent as string] === undefined
  if (setKey !== undefined) {
    const values = new Set((list as string).split(',').map((each) => each.trim()))
    return operator === 'in'
      ? (labels) => values.has(labels[setKey] as string)
      : (labels) => !values.has(labels[setKey] as string)
  }
  if (key !== undefined) return equals === '!=' ? (labels) => labels[key] !== value : (labels) => labels[key] === value
  return (labels) => labels[present as string] !== undefined
}
