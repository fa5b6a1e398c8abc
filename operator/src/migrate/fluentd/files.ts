// The files of a Fluentd configuration: finds configurations within files, and reads all elements, including those of included files.

import type { Gap, Included, NamedText } from '../draft.ts'
import type { Place } from '../fluent-bit/sections.ts'
import { type Inner, includedFrom, innerTexts } from '../inner.ts'
import { holdsOperatorKinds } from './fluent-operator.ts'
import { holdsResources } from './resources.ts'
import { type Element, type Include, innerInclude, readFluentd, readInner } from './syntax.ts'
import { isYamlConfiguration, readYamlConfiguration } from './yaml-syntax.ts'

const maxFiles = 100
/** Files that include each other within elements. */
const maxDepth = 10

const isElement = (text: string) => /^\s*<(?:source|match|filter|system|label|worker)\b[^>]*>\s*$/m.test(text)

export function isFluentd(given: NamedText): boolean {
  const { text } = given
  if (holdsResources(given) || holdsOperatorKinds(given)) return true
  if (isElement(text) && /^\s*(?:@?type)\s+\S/m.test(text)) return true
  if (isYamlConfiguration(text)) return true
  // In a value between quotes, line feeds are escaped.
  return /\.(?:ya?ml|json)$/i.test(given.file) && /@type\s/.test(text) && innerTexts(given, isElement).length > 0
}

/** The files inside a ConfigMap, a Secret or values of a chart; any other file unchanged. */
function filesIn(given: NamedText): { readonly mains: readonly NamedText[]; readonly all: readonly Inner[] } {
  const isInner = (text: string) => isElement(text) || isYamlConfiguration(text) || /^\s*@include\s/m.test(text)
  if (!/\.(?:ya?ml|json)$/i.test(given.file)) return { mains: [given], all: [] }
  const all = innerTexts(given, isInner)
  if (all.length === 0) return { mains: [given], all }
  // The main file includes the others. If no file does, as in chart values, they follow one another.
  const patterns = all.flatMap(({ name: from, text }) =>
    [...text.matchAll(/^\s*@include\s+["']?(\S+?)["']?\s*$/gm)].map(([, path = '']) => {
      const pattern = path.split('/').at(-1) ?? path
      return { from, regex: new RegExp(`^${pattern.split('*').map(RegExp.escape).join('.*')}$`) }
    }),
  )
  const isIncluded = (name: string) => patterns.some(({ from, regex }) => from !== name && regex.test(name))
  return { mains: all.filter(({ name }) => !isIncluded(name)), all }
}

/** The elements of files, in the order in which Fluentd reads them. A missing file becomes a gap. */
export function elementsIn(files: readonly NamedText[], besides: Included, gaps: Gap[]): Element[] {
  const inner = files.map(filesIn)
  const mains = inner.flatMap((each) => each.mains)
  const included = includedFrom(
    inner.flatMap(({ all }) => all),
    besides,
  )
  const elements: Element[] = []
  const seen = new Set<string>()
  const read = ({ file, text }: NamedText): void => {
    const key = keyOf({ file, text })
    if (seen.has(key) || seen.size >= maxFiles) return
    seen.add(key)
    const { parts, remarks } = isYamlConfiguration(text)
      ? readYamlConfiguration({ file, text })
      : readFluentd(text, file)
    gaps.push(...remarks)
    for (const part of parts) {
      if (!isInclude(part)) elements.push(whole(part, 0))
      else for (const each of found(part.path, part)) read(each)
    }
  }
  const found = (path: string, { file, line }: Place): readonly NamedText[] => {
    const next = included(path, file)
    if (next.length === 0) {
      const isPattern = path.includes('*')
      gaps.push({
        file,
        line,
        subject: `@include ${path}`,
        reason: isPattern ? 'there is no such file next to the configuration' : 'the file cannot be read',
        nearest: 'Put the file next to the configuration, and convert again.',
        ...(isPattern ? { isReplaced: true } : {}),
      })
    }
    return next
  }
  /** Replaces the includes of an element by the content of the files. */
  const whole = (element: Element, depth: number): Element => {
    const parameters = [...element.parameters]
    const children: Element[] = []
    for (const child of element.children) {
      if (child.name !== innerInclude) {
        children.push(whole(child, depth))
        continue
      }
      for (const { file, text } of depth < maxDepth ? found(child.argument, child) : []) {
        const { element: inner, remarks } = readInner(text, file)
        gaps.push(...remarks)
        const content = whole(inner, depth + 1)
        parameters.push(...content.parameters)
        children.push(...content.children)
      }
    }
    return { ...element, parameters, children }
  }
  const within = new Set(mains.flatMap((main) => includedWithin(main, included)))
  for (const main of mains) if (!within.has(keyOf(main))) read(main)
  return elements
}

const keyOf = ({ file, text }: NamedText) => `${file}\n${text}`

/** The files that elements of a file include. Their lines have no meaning outside of these elements. */
function includedWithin({ file, text }: NamedText, included: Included): readonly string[] {
  const keys = new Set<string>()
  const visit = (element: Element): void => {
    for (const child of element.children) {
      for (const each of child.name === innerInclude ? included(child.argument, file) : []) {
        if (keys.has(keyOf(each))) continue
        keys.add(keyOf(each))
        visit(readInner(each.text, each.file).element)
      }
      visit(child)
    }
  }
  for (const part of readFluentd(text, file).parts) if (!isInclude(part)) visit(part)
  return [...keys]
}

function isInclude(part: Element | Include): part is Include {
  return 'path' in part
}
