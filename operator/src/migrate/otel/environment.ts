// References to environment variables and files in values, such as `${env:NAME}`. A resource is literal text. In sinks, a variable becomes
// a reference to a Secret. Elsewhere it becomes its default, or a gap if it has none.

import { isTable } from '@penstock/agent/schema'
import { readReport } from '../environment.ts'
import type { Context, Mapping, Part, Path } from './mapping.ts'
import { nodeMark, variableMark } from './text.ts'

const placeholder = /\$\$|\$\{(?:([a-z][a-z0-9+.-]*):)?([^}]*)\}|\$([A-Z][A-Z0-9_]+)\b/g

/** Whether a variable contains the name of the node, which programs know. */
export const isNodeVariable = (name: string) => /^(?:\w+_)?NODE_NAME$/.test(name)

/** The option names in a path, without list indexes. */
const pathName = (path: Path) => path.filter((key) => typeof key === 'string').join('.')

/** A variable that the program reads; `valueLiteral` makes it an expression. */
function kept(part: Part, path: Path, whole: string, name: string, context: Context): string {
  const [variable = '', ...rest] = name.split(':-')
  const { reason, nearest } = readReport(variable)
  context.replaced(part.place(path), `${part.id}: ${whole}`, reason, nearest)
  return variableMark(variable, rest.join(':-'))
}

/**
 * The part with its placeholders resolved.
 * @param options those whose texts a program assigns to fields, and those that the program itself replaces
 */
export function withoutPlaceholders(
  part: Part,
  takesSecrets: boolean,
  context: Context,
  options: Pick<Mapping<unknown>, 'expresses' | 'itself'> = {},
): Part {
  const visit = (value: unknown, path: Path): unknown => {
    if (Array.isArray(value)) return value.map((item, index) => visit(item, [...path, index]))
    if (isTable(value)) {
      return Object.fromEntries(Object.entries(value).map(([key, below]) => [key, visit(below, [...path, key])]))
    }
    if (typeof value !== 'string') return value
    const name = pathName(path)
    const isNamed = (each: string) => each === name || (each.endsWith('*') && name.startsWith(each.slice(0, -1)))
    const isExpressed = (options.expresses ?? []).some(isNamed) && !value.startsWith('EXPR(')
    const isUnread = Object.keys(options.itself ?? {}).some((each) => `${name}.`.startsWith(`${each}.`))
    const text = value.replace(placeholder, (whole, scheme?: string, inBraces?: string, bare?: string) => {
      const given = inBraces ?? bare
      if (given === undefined) return '$'
      const isNode = !takesSecrets && (scheme ?? 'env') === 'env' && isNodeVariable(given)
      if (isNode && isUnread) return whole
      if (bare !== undefined) reportBare(part, path, whole, context)
      if (isNode && isExpressed) return nodeMark(context.readsEnvironment)
      if (isExpressed && context.readsEnvironment && (scheme ?? 'env') === 'env')
        return kept(part, path, whole, given, context)
      return resolved(part, path, whole, scheme ?? 'env', given, takesSecrets, context)
    })
    const isWhole = /^\$(?:\{[^}]*\}|[A-Z][A-Z0-9_]+)$/.test(value) && text !== value
    return isWhole && /^(?:true|false|-?\d+(?:\.\d+)?)$/.test(text) ? JSON.parse(text) : text
  }
  const config = visit(part.config, [])
  return part.with(isTable(config) ? config : {})
}

function reportBare(part: Part, path: Path, whole: string, context: Context): void {
  context.replaced(
    part.place(path),
    `${part.id}: ${whole}`,
    `\`${whole}\` is a variable in versions of the collector before 0.106, and text in later ones`,
    `If your version reads it as text, write \`$${whole}\` and convert again.`,
  )
}

function resolved(
  part: Part,
  path: Path,
  whole: string,
  scheme: string,
  name: string,
  takesSecrets: boolean,
  context: Context,
): string {
  const place = part.place(path)
  if (scheme !== 'env') {
    context.gap(
      place,
      `${part.id}: ${whole}`,
      `a resource is literal text, and \`${scheme}:\` refers to text from another place`,
      takesSecrets
        ? 'Put the text into a Secret, and replace the reference with SECRET[ALIAS.KEY].'
        : 'Replace the reference with the text.',
    )
    return whole
  }
  const [variable = '', ...rest] = name.split(':-')
  if (rest.length > 0) {
    const fallback = rest.join(':-')
    context.replaced(
      place,
      `${part.id}: ${whole}`,
      `the default \`${fallback}\` replaces the variable`,
      'If the variable was set, use its value instead.',
    )
    return fallback
  }
  if (takesSecrets) return `SECRET[env.${variable.replace(/[^A-Za-z0-9_]/g, '_')}]`
  context.gap(
    place,
    `${part.id}: ${whole}`,
    'a resource is literal text, and the environment variable has no value here',
    'Replace it with its value.',
  )
  return whole
}
