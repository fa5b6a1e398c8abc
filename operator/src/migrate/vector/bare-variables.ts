// Vector replaces variables in the text of a file before it parses it, so a variable may stand where TOML and YAML need a quoted text.

import { formatOf, readYamlDocuments } from '@penstock/agent/config'
import type { NamedText } from '../draft.ts'

const variable = String.raw`\$(?:\{[^}"'\n]*\}|[A-Za-z_]\w*)`
const inToml = new RegExp(String.raw`((?:=|\[|,)[ \t]*)(${variable})(?=[ \t]*(?:[,\]}#]|\r?$))`, 'g')
const inList = new RegExp(String.raw`([[,][ \t]*)(${variable})(?=[ \t]*[,\]])`, 'g')
/** A list on the line of its key. In other places, YAML reads the variable as a text. */
const yamlList = /^[ \t]*(?:- )?[\w."-]+:[ \t]*\[.*\][ \t]*(?:#.*)?\r?$/gm

const inTable = new RegExp(String.raw`([{,][ \t]*[\w."-]+:[ \t]+)(${variable})(?=[ \t]*[,}])`, 'g')

/** Whether a text is YAML. */
function isYaml(text: string): boolean {
  const { documents, problem } = readYamlDocuments(text)
  return problem === undefined && documents.every(({ problems }) => problems.length === 0)
}

/** The same text with quotes around such variables. Lines stay where they are, and programs in texts of several lines stay as they are. */
export function withQuotedVariables({ file, text }: NamedText): NamedText {
  if (!text.includes('$')) return { file, text }
  if (formatOf(file) !== 'toml') {
    const lists = text.replace(yamlList, (line) => line.replace(inList, '$1"$2"'))
    // Programs have such tables, too, so they only change in a text that is not YAML.
    return { file, text: lists.search(inTable) >= 0 && !isYaml(lists) ? lists.replace(inTable, '$1"$2"') : lists }
  }
  let isInside = false
  const lines = text.split('\n').map((line) => {
    const wasInside = isInside
    if ((line.match(/'''|"""/g) ?? []).length % 2 === 1) isInside = !isInside
    return wasInside || isInside ? line : line.replace(inToml, '$1"$2"')
  })
  return { file, text: lines.join('\n') }
}
