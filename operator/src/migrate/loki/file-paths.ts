// The path of a target of files. Its labels are known here, so rules that set `__path__` from them can be evaluated. A label whose value
// only the agent knows contains a variable.

import type { Report } from './context.ts'
import type { Rule } from './relabel.ts'
import type { Tree } from './tree.ts'

type Labels = readonly (readonly [string, string, Tree])[]

/** The label of a target with the path or pattern of its files. */
export const pathLabel = '__path__'
/** The label with the pattern of files that the old agent does not read. */
export const excludeLabel = '__path_exclude__'

/** The name of a rule that stands for a component which finds files: after it, the label contains the path of a file, not the pattern. */
export const foundPath = 'match: path'

export const readsPath = (rules: readonly Rule[]): boolean => rules.some(({ sources }) => sources.includes(pathLabel))

export interface FilePath {
  /** Undefined if the target has none. */
  readonly path: string | undefined
  /** The rule that sets it from a value that only the agent knows. */
  readonly unknown?: Rule
}

const unknown = '$'.concat('{_}')
const isUnknown = (text: string) => /\$\{[A-Z_]/.test(text)
const isAnything = (regex: string) => regex === '(.*)' || regex === '.*'

/** A regular expression of Go for whole values; undefined if JavaScript reads it in another way. */
function wholeRegex(regex: string): RegExp | undefined {
  const [, flags = '', rest = ''] = /^(?:\(\?([is]+)\))?([\s\S]*)$/.exec(regex) ?? []
  try {
    return new RegExp(`^(?:${rest.replaceAll('(?P<', '(?<')})$`, flags.includes('i') ? 'is' : 's')
  } catch {
    // The program reports an expression that is not valid.
    return undefined
  }
}

/** A text with the groups of a match, as Go writes them: a name is as long as possible. */
const filled = (text: string, match: RegExpExecArray) =>
  text.replace(/\$\$|\$\{(\w+)\}|\$(\w+)/g, (whole, braced?: string, plain?: string) => {
    if (whole === '$$') return '$'
    const name = braced ?? plain ?? ''
    return (/^\d+$/.test(name) ? match[Number(name)] : match.groups?.[name]) ?? ''
  })

/** The value that a rule gives its target, and the target; undefined if the rule changes nothing. */
function resultOf(rule: Rule, values: ReadonlyMap<string, string>): { target: string; value: string } | undefined {
  const { target, replacement } = rule
  const given = rule.sources.map((name) => values.get(name) ?? '').join(rule.separator)
  const hasGroups = [target, replacement].some((text) => /\$(?:\w|\{(?![A-Z_]))/.test(text))
  if (isAnything(rule.regex) && !hasGroups) return { target, value: replacement }
  const regex = wholeRegex(rule.regex)
  if (isUnknown(given) || isUnknown(rule.regex) || regex === undefined) return { target, value: unknown }
  const match = regex.exec(given)
  return match === null ? undefined : { target: filled(target, match), value: filled(replacement, match) }
}

/** Whether a rule gives all targets the same value. */
export const isConstant = ({ regex, replacement }: Rule): boolean => isAnything(regex) && !/\$[\w{]/.test(replacement)

/** The path of a target after its rules, or another label with a path; those after a component that finds files do not change it. */
export function pathAfter(labels: Labels, rules: readonly Rule[], label = pathLabel): FilePath {
  const values = new Map(labels.map(([name, text]) => [name, text]))
  let last: Rule | undefined
  for (const rule of rules) {
    if (rule.action === foundPath) break
    if (rule.action === 'labeldrop' || rule.action === 'labelkeep') {
      const regex = wholeRegex(rule.regex)
      for (const name of [...values.keys()])
        if (regex?.test(name) === (rule.action === 'labeldrop')) values.delete(name)
    }
    if (rule.action === 'hashmod') values.set(rule.target, unknown)
    if (rule.action !== 'replace') continue
    const result = resultOf(rule, values)
    if (result === undefined) continue
    if (result.target === label) last = rule
    values.set(result.target, result.value)
  }
  const path = values.get(label)
  if (path === undefined || path === '') return { path: undefined }
  return last !== undefined && path.includes(unknown) ? { path: undefined, unknown: last } : { path }
}

/** The patterns of files that a target of files excludes. */
export function excludedAfter(labels: Labels, rules: readonly Rule[], report: Report): readonly string[] {
  const { path, unknown } = pathAfter(labels, rules, excludeLabel)
  if (unknown !== undefined) {
    const reason = 'the pattern depends on a value that only the agent knows'
    report.gap(unknown, `relabel rule on ${excludeLabel}`, reason, 'Set `exclude` of the source.')
  }
  return path === undefined ? [] : [path]
}
