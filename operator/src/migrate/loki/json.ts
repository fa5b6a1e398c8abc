// The stage `json`. Paths of names and indexes become fields of the parsed value; other JMESPath expressions become lines.

import { fieldLiteral, textLiteral } from '@penstock/agent/config'
import { flagIn, option, type Part, textIn } from './context.ts'
import { extracted } from './fields.ts'
import { compileJmesPath } from './jmespath.ts'
import { indent, type Lines, onSource, type Scope, type Stage } from './stage.ts'
import { pairsOf } from './tree.ts'

const asText =
  'if is_null(value) || is_string(value) { value } else if is_float(value) { replace(to_string!(value), r\'\\.0$\', "") } else if is_object(value) || is_array(value) { encode_json(value) } else { to_string!(value) }'

/** A JMESPath expression of only names and indexes as a path; undefined for other expressions. */
function jsonPath(expression: string): string | undefined {
  let rest = expression.trim()
  let path = ''
  if (rest === '@') return ''
  while (rest !== '') {
    const found = /^(?:\.?([A-Za-z_]\w*)|\.?"((?:[^"\\]|\\.)*)"|\[(-?\d+)\])/.exec(rest)
    if (found === null || (path === '' && (rest.startsWith('.') || found[3] !== undefined))) return undefined
    if (path !== '' && found[3] === undefined && !rest.startsWith('.')) return undefined
    if (found[3] !== undefined) path += `[${found[3]}]`
    else path += found[1] === undefined ? `.${textLiteral(JSON.parse(`"${found[2]}"`))}` : `.${found[1]}`
    rest = rest.slice(found[0].length)
  }
  return path
}

/** The lines for an expression that is more than a path. They set the extracted value. */
function computed(name: string, expression: string, part: Part, scope: Scope): Lines {
  const compiled = compileJmesPath(expression, 'parsed', (result) => [
    `value = get({ "value": ${result} }, ["value"]) ?? null`,
    `${extracted(name)} = ${asText}`,
  ])
  if (compiled.ok) return compiled.lines
  const reason = `\`${expression}\` is not converted: ${compiled.reason}`
  return scope.refuse(part, reason, 'Compute the value from `parsed` in the program.')
}

export const json: Stage = {
  name: 'json',
  becomes: '`parse_json`',
  options: {
    expressions: 'paths into the parsed line; JMESPath with `||`, filters, projections and common functions',
    source: 'the value to parse',
    drop_malformed: '`abort`',
  },
  build: (part, scope) => {
    const others: Lines[] = []
    const values = pairsOf(option(part, 'expressions')).flatMap(([name, expression, place]) => {
      const path = jsonPath(expression === '' ? name : expression)
      if (path !== undefined) return [[name, path] as const]
      others.push(computed(name, expression || name, { ...part, line: place.line }, scope))
      return []
    })
    const stored = [
      `values = { ${values.map(([name, path]) => `${textLiteral(name)}: parsed${path}`).join(', ')} }`,
      `values = map_values(values) -> |value| { ${asText} }`,
      ...values.map(([name]) => `${extracted(name)} = values${fieldLiteral([name])}`),
    ]
    return onSource(textIn(part, 'source'), (subject) => [
      `parsed, error = parse_json(${subject})`,
      'if error == null && is_object(parsed) {',
      ...indent(values.length === 0 ? [] : stored),
      ...indent(others.flat()),
      ...(flagIn(part, 'drop_malformed') === true ? ['} else {', '  abort', '}'] : ['}']),
    ])
  },
}
