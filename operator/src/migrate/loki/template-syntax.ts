// Reads Go templates: text, actions with their words, and blocks.

import { matchesIn } from '../matches.ts'
import { unquote } from './selector.ts'

export type Node =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'value'; readonly words: readonly Word[] }
  /** A variable with its value. */
  | { readonly kind: 'set'; readonly name: string; readonly words: readonly Word[] }
  | { readonly kind: 'if'; readonly branches: readonly Branch[] }
export interface Branch {
  /** The condition; undefined for `else`. */
  readonly words: readonly Word[] | undefined
  /** Whether the value of the condition becomes the dot, as in `with`. */
  readonly isDot: boolean
  /** The variable that gets the value of the condition. */
  readonly variable: string | undefined
  readonly nodes: readonly Node[]
}
export type Word =
  | { readonly kind: 'field' | 'text' | 'name' | 'variable'; readonly text: string }
  /** A field of the outermost dot, `$.name`. */
  | { readonly kind: 'root'; readonly text: string }
  | { readonly kind: 'dot' }
  | { readonly kind: 'number'; readonly text: string }
  | { readonly kind: 'pipe' }
  /** Words in brackets, and the names of members after them. */
  | { readonly kind: 'group'; readonly words: readonly Word[]; readonly members: readonly string[] }

interface Open {
  nodes: Node[]
  branches: { words: readonly Word[] | undefined; isDot: boolean; variable: string | undefined; nodes: Node[] }[]
}

const action = /\{\{(-\s)?\s*((?:"(?:[^"\\]|\\.)*"|`[^`]*`|[^"`}]|\}(?!\}))*?)\s*(\s-)?\}\}/g

/** The nodes of a template; throws an error with the reason if it cannot be converted. */
export function parseTemplate(template: string): readonly Node[] {
  const stack: Open[] = [{ nodes: [], branches: [] }]
  const top = () => stack.at(-1) as Open
  const current = () => top().branches.at(-1)?.nodes ?? top().nodes
  let from = 0
  let trims = false
  const addText = (text: string): void => {
    if (text !== '') current().push({ kind: 'text', text })
  }
  for (const found of template.matchAll(action)) {
    let text = template.slice(from, found.index)
    if (trims) text = text.trimStart()
    if (found[1] !== undefined) text = text.trimEnd()
    addText(text)
    trims = found[3] !== undefined
    from = found.index + found[0].length
    act(found[2] ?? '', stack, current())
  }
  const tail = template.slice(from)
  if (tail.includes('{{')) throw new Error('`{{` without `}}`')
  addText(trims ? tail.trimStart() : tail)
  if (stack.length > 1) throw new Error('`if` without `end`')
  return stack[0]?.nodes ?? []
}

/** Adds an action to the open blocks. */
function act(text: string, stack: Open[], nodes: Node[]): void {
  if (text.startsWith('/*')) return
  const [, keyword = '', rest = ''] =
    /^(else if|else with|if|else|end|range|with|define|block|template|break|continue)\b\s*(.*)$/s.exec(text) ?? []
  const variable = /^\$(\w+)\s*:?=\s*(.*)$/s.exec(text)
  switch (keyword) {
    case 'if':
    case 'with':
      stack.push({ nodes: [], branches: [branch(rest, keyword === 'with')] })
      break
    case 'else':
    case 'else if':
    case 'else with': {
      const open = stack.length === 1 ? undefined : stack.at(-1)
      if (open === undefined) throw new Error('`else` without `if`')
      const isLast = keyword === 'else'
      open.branches.push(
        isLast
          ? { words: undefined, isDot: false, variable: undefined, nodes: [] }
          : branch(rest, keyword.endsWith('with')),
      )
      break
    }
    case 'end': {
      const closed = stack.length > 1 ? stack.pop() : undefined
      if (closed === undefined) throw new Error('`end` without `if`')
      const open = stack.at(-1) as Open
      const into = open.branches.at(-1)?.nodes ?? open.nodes
      into.push({ kind: 'if', branches: closed.branches })
      break
    }
    case '':
      if (variable === null) nodes.push({ kind: 'value', words: wordsOf(text) })
      else nodes.push({ kind: 'set', name: variable[1] ?? '', words: wordsOf(variable[2] ?? '') })
      break
    default:
      throw new Error(`\`${keyword}\` has no counterpart`)
  }
}

function branch(text: string, isDot: boolean): Open['branches'][number] {
  const [, variable, rest] = /^\$(\w+)\s*:?=\s*(.*)$/s.exec(text) ?? []
  return { words: wordsOf(rest ?? text), isDot, variable, nodes: [] }
}

const word =
  /\s*(?:"((?:[^"\\]|\\.)*)"|`([^`]*)`|(-?\d+(?:\.\d+)?)(?![\w.])|(\$?)\.([A-Za-z_][\w.]*)|([A-Za-z_]\w*)|\$(\w+)|(\|)|(\()|(\)((?:\.\w+)*))|(\.))/y

function wordsOf(text: string): readonly Word[] {
  const stack: Word[][] = [[]]
  const refused = (rest: string) => new Error(`\`${rest.trim()}\` is not read`)
  for (const found of matchesIn(text.trimEnd(), word, refused)) {
    const [, quoted, raw, number, root, field, name, variable, pipe, open, close, members = ''] = found
    const words = stack.at(-1) as Word[]
    if (quoted !== undefined) words.push({ kind: 'text', text: unquote(quoted) })
    else if (raw !== undefined) words.push({ kind: 'text', text: raw })
    else if (number !== undefined) words.push({ kind: 'number', text: number })
    else if (field !== undefined) words.push({ kind: root === '$' ? 'root' : 'field', text: field })
    else if (name !== undefined) words.push({ kind: 'name', text: name })
    else if (variable !== undefined) words.push({ kind: 'variable', text: variable })
    else if (pipe !== undefined) words.push({ kind: 'pipe' })
    else if (open !== undefined) stack.push([])
    else if (close === undefined) words.push({ kind: 'dot' })
    else {
      const group = stack.length > 1 ? stack.pop() : undefined
      if (group === undefined) throw new Error('a bracket is not open')
      stack.at(-1)?.push({ kind: 'group', words: group, members: members.split('.').filter((member) => member !== '') })
    }
  }
  if (stack.length > 1) throw new Error('a bracket is not closed')
  return stack[0] ?? []
}
