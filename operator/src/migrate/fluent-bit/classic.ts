// Fluent Bit's classic syntax: `[SECTION]` lines, followed by indented lines with a key and a value. A `#` begins a comment only at
// the start of a line, because values such as regular expressions may contain it.

import type { Entry, Place, SectionFile, Unread } from './sections.ts'

export function readClassic(text: string, file: string): SectionFile {
  const sections: (Place & { kind: string; entries: Entry[] })[] = []
  const variables = new Map<string, string>()
  const includes: Entry[] = []
  const unread: Unread[] = []
  for (const [index, raw] of text
    .replace(/^\uFEFF/, '')
    .split(/\r?\n/)
    .entries()) {
    const place = { file, line: index + 1 }
    const line = raw.trim()
    if (line === '' || line.startsWith('#')) continue
    const header = /^\[([^\]]+)\]$/.exec(line)
    if (header?.[1] !== undefined) {
      sections.push({ ...place, kind: header[1].trim().toLowerCase(), entries: [] })
      continue
    }
    if (raw.startsWith('[')) {
      unread.push({ ...place, reason: `\`${line}\` begins a section, and has no \`]\` at its end`, isUnreadable: true })
      continue
    }
    const [, key = '', value = ''] = /^(\S+)\s*(.*)$/.exec(line) ?? []
    if (key.toLowerCase() === '@include') {
      includes.push({ ...place, key: 'include', value })
      continue
    }
    const set = key.toLowerCase() === '@set' ? /^([^=]+)=(.*)$/.exec(value) : null
    if (set?.[1] !== undefined) {
      variables.set(set[1].trim(), (set[2] ?? '').trim())
      continue
    }
    const section = sections.at(-1)
    if (key.startsWith('@'))
      unread.push({ ...place, reason: `Fluent Bit has no command \`${key}\``, isUnreadable: true })
    else if (section === undefined)
      unread.push({ ...place, reason: 'the line is before the first section', isUnreadable: true })
    else section.entries.push({ ...place, key: key.toLowerCase(), value })
  }
  return { sections, variables, includes, unread }
}
