// Reference pages for a terminal, which cannot follow links: a link becomes its text and the argument for `explain`, or its URL. With
// colours, headings are bold, and code names are coloured instead of quoted. Lines are wrapped between words.

import { type Style, styled } from '../formats/pretty.ts'
import { type Sheet, wrapped } from '../terminal.ts'

/** The Markdown of a page, formatted for a terminal. Without colours or columns, only links change. */
export function pageText(markdown: string, { color, columns }: Sheet): string {
  let isCode = false
  const lines: string[] = []
  for (const line of markdown.split('\n')) {
    if (/^\s*```/.test(line)) {
      isCode = !isCode
      if (!color) lines.push(line)
    } else if (isCode) lines.push(color ? `    ${styled(line, 'cyan', true)}` : line)
    else lines.push(wrapped(proseText(line, color), columns, hangOf(line)))
  }
  return lines.join('\n')
}

/** Continuation lines of a list item are indented below its text. */
const hangOf = (line: string): number => /^ *(?:[-*] |\d+\. )?/.exec(line)?.[0].length ?? 0

function proseText(line: string, color: boolean): string {
  const [, heading] = /^#+ (.*)$/.exec(line) ?? []
  if (heading !== undefined && color) return inlineText(heading, color, 'bold')
  return inlineText(line, color)
}

/** Links and code names in a line; the text in code quotes is kept unchanged. */
function inlineText(line: string, color: boolean, style?: Style): string {
  const parts = line.split(/(`` .*? ``|`[^`]*`|\[[^\]]*\]\([^)\s]*\))/)
  return parts
    .map((part, index) => {
      const isSpecial = index % 2 === 1
      if (isSpecial && part.startsWith('[')) return linkText(part)
      if (isSpecial && color) return styled(part.replace(/^``? ?| ?``?$/g, ''), 'cyan', true)
      return style === undefined || part === '' ? part : styled(part, style, color)
    })
    .join('')
}

function linkText(link: string): string {
  const [, text = '', target = ''] = /^\[(.*)\]\((.*)\)$/.exec(link) ?? []
  if (/^[a-z]+:/.test(target)) return text === target ? text : `${text} (${target})`
  const [, name] = /([^/]+)\.md(?:#.*)?$/.exec(target) ?? []
  return name === undefined || name === text ? text : `${text} (explain ${name})`
}
