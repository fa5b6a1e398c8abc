// Reads the files of a Fluent Bit configuration into sections, in the order in which Fluent Bit reads them, with values of variables.

import type { Gap, Included, NamedText, SecretKey } from '../draft.ts'
import { holdsOperatorKinds } from '../fluentd/fluent-operator.ts'
import { includedFrom, podFieldsIn } from '../inner.ts'
import { readClassic } from './classic.ts'
import { embedded } from './embedded.ts'
import { holdsResources, sectionsOf } from './resources.ts'
import type { Entry, Section, SectionFile } from './sections.ts'
import { isClassic, nodeVariable } from './text.ts'
import { readYaml } from './yaml.ts'

const maxFiles = 100

export function load(files: readonly NamedText[], included: Included, gaps: Gap[]): Section[] {
  return read(files, included, gaps).sections
}

export interface Configuration {
  readonly sections: Section[]
  /** Finds the files of the configuration. */
  readonly found: Included
  /** Keys of Secrets by the variables that refer to them. */
  readonly secrets: ReadonlyMap<string, SecretKey>
}

export function read(given: readonly NamedText[], onDisk: Included, gaps: Gap[]): Configuration {
  const resources = sectionsOf(given.filter(holdsResources), gaps)
  const files = given.filter((file) => !holdsResources(file) && !holdsOperatorKinds(file))
  const inner = files.map((given) => embedded(given))
  const mains = files.flatMap((given, index) => inner[index]?.mains ?? [given])
  const neighbours = [...resources.scripts, ...inner.flatMap((each) => each?.all ?? [])]
  const included = includedFrom(neighbours, onDisk)
  const sections: Section[] = [...resources.sections]
  const variables = new Map<string, string>(inner.flatMap((each) => [...(each?.variables ?? [])]))
  const ofNode = given.flatMap((file) => [...podFieldsIn(file)]).filter(([, path]) => path === 'spec.nodeName')
  for (const [name] of ofNode) variables.set(name, nodeVariable)
  const seen = new Set<string>()
  const take = ({ file, text }: NamedText): void => {
    const key = `${file}\n${text}`
    if (seen.has(key) || seen.size >= maxFiles) return
    seen.add(key)
    const found: SectionFile =
      /\.ya?ml$/i.test(file) && !isClassic(text) ? readYaml(text, file) : readClassic(text, file)
    for (const { reason, ...place } of found.unread) {
      gaps.push({ ...place, subject: file, reason, nearest: 'Correct the file, or remove the text.' })
    }
    for (const [name, value] of found.variables) variables.set(name, value)
    const filesOf = (wanted: string) =>
      found.sections
        .filter(({ kind }) => kind === 'service')
        .flatMap(({ entries }) => entries.filter(({ key }) => key === wanted))
    const parserFiles = filesOf('parsers_file')
    const follow = (entry: Entry): void => {
      const files = included(entry.value, file)
      if (files.length === 0) {
        gaps.push({
          file: entry.file,
          line: entry.line,
          subject: entry.value,
          reason: 'the file cannot be read',
          nearest: 'Put the file next to the configuration, and convert again.',
        })
      }
      for (const next of files) take(next)
    }
    // The order of plugins matters, so sections of an included file are inserted at the include statement.
    const parts = [...found.sections, ...found.includes].sort((a, b) => a.line - b.line)
    for (const part of parts) {
      if ('entries' in part) sections.push(part)
      else follow(part)
    }
    // Parsers that Fluent Bit ships are known without their file.
    for (const entry of parserFiles) if (included(entry.value, file).length > 0) follow(entry)
    for (const entry of filesOf('streams_file')) follow(entry)
  }
  for (const main of mains) take(main)
  const resolve = (text: string) =>
    text.replace(/\$\{([A-Za-z0-9_]+)\}/g, (whole, name: string) => variables.get(name) ?? whole)
  reportReferences(sections, gaps)
  const resolvedIn = (section: Section): Section => ({
    ...section,
    entries: section.entries.map((entry) => ({ ...entry, value: resolve(entry.value) })),
    ...(section.processors === undefined ? {} : { processors: section.processors.map(resolvedIn) }),
    ...(section.routes === undefined ? {} : { routes: section.routes.map(resolvedIn) }),
  })
  const resolved = sections.map(resolvedIn)
  return { sections: resolved, found: included, secrets: resources.secrets }
}

/** Reports references in values that nothing replaces. */
function reportReferences(sections: readonly Section[], gaps: Gap[]): void {
  for (const { kind, entries } of sections) {
    if (kind === 'service') continue
    for (const { value, file, line } of entries) {
      if (/\{\{.*\}\}/.test(value)) {
        const reason = 'the templates of the chart have not been rendered'
        gaps.push({ file, line, subject: value, reason, nearest: 'Convert the output of `helm template`.' })
      }
      // The syntax has no defaults, as in `NAME:-default`.
      const [odd] = /\$\{(?!\w+\})[^}$]+\}/.exec(value) ?? []
      if (odd === undefined || kind.endsWith('parser')) continue
      const isName = /^\$\{[\w.-]+\}$/.test(odd)
      const reason = isName
        ? 'names of variables with dots or dashes have no counterpart'
        : 'Fluent Bit takes the whole text in braces for the name of a variable, and no variable has such a name'
      const nearest = isName
        ? 'Use letters, digits and underscores in the name, or write the value.'
        : 'Write the value.'
      gaps.push({ file, line, subject: odd, reason, nearest })
    }
  }
}
