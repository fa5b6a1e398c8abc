// References to values of a chart within a configuration, such as `{{ .Release.Name }}`. One whose value the file has becomes that value.
// Another one is a text that is not known here, as a variable of the environment is, so it becomes one.

import type { Gap, NamedText } from './draft.ts'
import { below, textOf } from './loki/tree.ts'
import { treesOf } from './loki/yaml.ts'

/** The chart of Promtail fills in those below `config`, which are the configuration itself. */
const reference =
  /\{\{-?\s*\$?\.((?:Values(?!\.config\.)|Release|Chart)(?:\.\w+)+)(?:\s*\|\s*(?:quote|squote|trim|toString))?\s*-?\}\}/g

/** `Release.Name` as the name of a variable; values of the chart stand without `Values`. */
const variableOf = (path: string) =>
  path
    .replace(/^Values\./, '')
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .replace(/\W+/g, '_')
    .toUpperCase()

/**
 * The texts without references to values of a chart.
 * @param files that may hold the values
 * @param write how the agent writes a variable
 * @param gaps receives a row for each reference that became a variable
 */
export function withoutReferences(
  texts: readonly NamedText[],
  files: readonly NamedText[],
  write: (variable: string) => string,
  gaps: Gap[],
): readonly NamedText[] {
  if (!texts.some(({ text }) => text.includes('{{'))) return texts
  const roots = files.filter(({ file }) => /\.ya?ml$/i.test(file)).flatMap((file) => treesOf(file, []))
  const givenIn = (path: string) => {
    const [first, ...names] = path.split('.')
    return first === 'Values'
      ? roots.map((root) => textOf(below(root, ...names))).find((text) => text !== undefined)
      : undefined
  }
  return texts.map(({ file, text }) => ({
    file,
    text: text.replace(reference, (whole, path: string, offset: number) => {
      const value = givenIn(path)
      if (value !== undefined && !value.includes('{{')) return value
      const variable = variableOf(path)
      gaps.push({
        file,
        line: text.slice(0, offset).split('\n').length,
        subject: whole,
        reason: `the value of the chart is not in the file, so it is the variable \`${variable}\` now`,
        nearest: 'Convert what `helm template` gives, or put the value into the Secret below the name of the variable.',
        isReplaced: true,
      })
      return write(variable)
    }),
  }))
}
