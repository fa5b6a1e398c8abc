// The files of a Fluentd configuration: finds configurations within files, and reads all elements, including those of included files.

import type { Gap, Included, NamedText } from '../draft.ts'
import { type Inner, includedFrom, innerTexts } from '../inner.ts'
import { holdsOperatorKinds } from './fluent-operator.ts'
import { holdsResources } from './resources.ts'
import { type Element, type Include, readFluentd } from './syntax.ts'

const maxFiles = 100

const isElement = (text: string) => /^\s*<(?:source|match|filter|system|label|worker)\b[^>]*>\s*$/m.test(text)

export function isFluentd(given: NamedText): boolean {
  const { text } = given
  if (holdsResources(given) || holdsOperatorKinds(given)) return true
  return isElement(text) && /^\s*(?:@?type)\s+\S/m.test(text)
}

/** The files inside a ConfigMap, a Secret or values of a chart; any other file unchanged. */
function filesIn(given: NamedText): { readonly mains: readonly NamedText[]; readonly all: readonly Inner[] } {
  if (!/\.(?:ya?ml|json)$/i.test(given.file)) return { mains: [given], all: [] }
  const all = innerTexts(given, (text) => isElement(text) || /^\s*@include\s/m.test(text))
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
    const key = `${file}\n${text}`
    if (seen.has(key) || seen.size >= maxFiles) return
    seen.add(key)
    const { parts, remarks } = readFluentd(text, file)
    gaps.push(...remarks)
    for (const part of parts) {
      if (!isInclude(part)) {
        elements.push(part)
        continue
      }
      const next = included(part.path, file)
      if (next.length === 0) {
        const isPattern = part.path.includes('*')
        gaps.push({
          file,
          line: part.line,
          subject: `@include ${part.path}`,
          reason: isPattern ? 'there is no such file next to the configuration' : 'the file cannot be read',
          nearest: 'Put the file next to the configuration, and convert again.',
          ...(isPattern ? { isReplaced: true } : {}),
        })
      }
      for (const each of next) read(each)
    }
  }
  for (const main of mains) read(main)
  return elements
}

function isInclude(part: Element | Include): part is Include {
  return 'path' in part
}
