// Converters that look at values of any type: whether they are empty, the positions and members of lists, booleans, and severities.

import { textLiteral } from '@penstock/agent/config'
import { type Converter, valueAt } from './converter.ts'
import { constantTexts, required } from './editors.ts'
import { idDigits } from './paths.ts'
import { type Node, Unconvertible } from './syntax.ts'

const noIds = Object.values(idDigits).map((digits) => textLiteral('0'.repeat(digits)))

export const isEmpty: Converter = {
  becomes: '`includes` with all empty values',
  parameters: ['value'],
  run: (program, lines, values) => ({
    code: `includes([null, "", ${noIds.join(', ')}, 0, 0.0, false, {}, []], ${valueAt(program, lines, values, 'value').code})`,
    kind: 'boolean',
  }),
}

export const toBoolean: Converter = {
  becomes: '`if` for each type',
  parameters: ['value'],
  run: (program, lines, values) => {
    const value = lines.opaque(valueAt(program, lines, values, 'value'))
    const name = lines.newName('flag')
    lines.add(
      `${name} = if is_boolean(${value}) { ${value} } else if is_integer(${value}) || is_float(${value}) { ${value} != 0 } else { null }`,
      `if includes(["1", "t", "T", "true", "TRUE", "True"], ${value}) { ${name} = true }`,
      `if includes(["0", "f", "F", "false", "FALSE", "False"], ${value}) { ${name} = false }`,
    )
    return { code: name, kind: 'any' }
  },
}

export const indexOf: Converter = {
  becomes: '`find` for texts, and a loop for lists',
  parameters: ['target', 'value'],
  run: (program, lines, values) => {
    const source = lines.opaque(valueAt(program, lines, values))
    const value = lines.opaque(valueAt(program, lines, values, 'value'))
    const name = lines.newName('index')
    lines.add(
      `${name} = null`,
      `if is_string(${source}) && is_string(${value}) { ${name} = find(string!(${source}), string!(${value})) }`,
      `if is_array(${source}) {`,
      `  for_each(array!(${source})) -> |place, item| { if ${name} == null && item == ${value} { ${name} = place } }`,
      '}',
    )
    lines.require(`is_array(${source}) || (is_string(${source}) && is_string(${value}))`, true)
    lines.add(`if ${name} == null { ${name} = -1 }`)
    return { code: name, kind: 'any' }
  },
}

export const sliceToMap: Converter = {
  becomes: 'a loop over the objects of a list',
  parameters: ['target', 'keyPath', 'valuePath'],
  run: (program, lines, values) => {
    const list = lines.as(valueAt(program, lines, values), 'list').code
    const at = (path: readonly string[]) => `get(item, [${path.map(textLiteral).join(', ')}]) ?? null`
    const key = constantTexts(values, 'keyPath')
    const value = constantTexts(values, 'valuePath')
    const name = lines.newName('map')
    lines.add(
      `${name} = {}`,
      `for_each(${list}) -> |place, item| {`,
      `  key = ${key.length === 0 ? 'to_string(place)' : at(key)}`,
      `  member = ${value.length === 0 ? 'item' : at(value)}`,
      `  if is_object(item) && is_string(key) && member != null { ${name} = set!(${name}, [key], member) }`,
      '}',
    )
    return { code: `(object(${name}) ?? {})`, kind: 'map' }
  },
}

const membersOf = (node: Node): readonly (readonly [string, Node])[] => (node.type === 'map' ? node.members : [])
const itemsOf = (node: Node): readonly Node[] => (node.type === 'list' ? node.items : [node])
const literalOf = (node: Node | undefined) =>
  node?.type === 'literal' || node?.type === 'number' ? node.value : undefined

/** Tests for the conditions of a level: texts that are equal, or a range of integers. */
function levelTests(node: Node, value: string, code: string): string[] {
  const range = (min: unknown, max: unknown) => `(${code} >= ${min} && ${code} <= ${max})`
  return itemsOf(node).flatMap((item) =>
    membersOf(item).map(([name, given]) => {
      const status = /^([2-5])xx$/.exec(String(literalOf(given)))?.[1]
      const [min, max] = ['min', 'max'].map((end) => literalOf(membersOf(given).find(([key]) => key === end)?.[1]))
      if (name === 'range' && status !== undefined) return range(`${status}00`, `${status}99`)
      if (name === 'range' && min !== undefined && max !== undefined) return range(min, max)
      const texts = itemsOf(given).map(literalOf)
      if (name === 'range' || texts.includes(undefined)) throw new Unconvertible('a severity has an unknown condition')
      return `includes([${texts.map((text) => textLiteral(String(text))).join(', ')}], ${value})`
    }),
  )
}

export const parseSeverity: Converter = {
  becomes: '`if` for each level of the mapping',
  parameters: ['target', 'severityMapping'],
  run: (program, lines, values) => {
    const mapping = required(values, 'severityMapping')
    if (mapping.type !== 'map') throw new Unconvertible('the mapping must be a literal map')
    const value = lines.opaque(valueAt(program, lines, values))
    const name = lines.newName('level')
    lines.add(`code = int(${value}) ?? -1`, `${name} = null`)
    for (const [level, node] of mapping.members) {
      const tests = levelTests(node, value, 'code')
      if (tests.length > 0) lines.add(`if ${tests.join(' || ')} { ${name} = ${textLiteral(level)} }`)
    }
    lines.require(`${name} != null`, true)
    return { code: name, kind: 'any' }
  },
}
