// Vector replaces variables in the text of a file before it parses it, so a variable may stand where TOML and YAML need a quoted text.

import { formatOf } from '@penstock/agent/config'
import type { NamedText } from '../draft.ts'

const variable = String.raw`\$(?:\{[^}"'\n]*\}|[A-Za-z_]\w*)`
const inToml = new RegExp(String.raw`((?:=|\[|,)[ \t]*)(${variable})(?=[ \t]*(?:[,\]}#]|\r?$))`, 'g')
const inList = new RegExp(String.raw`([[,][ \t]*)(${variable})(?=[ \t]*[,\]])`, 'g')
/** A list on the line of its key. In other places, YAML reads the variable as a text. */
const yamlList = /^[ \t]*(?:- )?[\w."-]+:[ \t]*\[.*\][ \t]*(?:#.*)?\r?$/gm

/** The same text with quotes around such variables. Lines stay where they are, and programs in texts of several lines stay as they are. */
export function withQuotedVariables({ file, text }: NamedText): NamedText {
  if (!text.includes('$')) return { file, text }
  if (formatOf(file) !== 'toml') return { file, text: text.replace(yamlList, (line) => line.replace(inList, '$1"$2"')) }
  let isInside = false
  const lines = text.split('\n').map((line) => {
    const wasInside = isInside
    if ((line.match(/'''|"""/g) ?? []).length % 2 === 1) isInside = !isInside
    return wasInside || isInside ? line : line.replace(inToml, '$1"$2"')
  })
  return { file, text: lines.join('\n') }
}
