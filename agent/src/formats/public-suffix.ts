// Public suffixes, from a library's list or from a list in the publicsuffix.org format.

import { createRequire } from 'node:module'
import type * as tldts from 'tldts'

const require = createRequire(import.meta.url)

/** Number of labels at the end of a name that form a public suffix; 0 if the list has no matching rule. */
export type SuffixList = (labels: readonly string[]) => number

export function standardSuffixes(): SuffixList {
  const { parse } = require('tldts') as typeof tldts
  const options = { allowPrivateDomains: true, extractHostname: false, validateHostname: false, detectIp: false }
  return (labels) => {
    // The list contains lower-case names, so an upper-case name matches no rule.
    let from = labels.length
    while (from > 0 && isPlain(labels[from - 1] as string)) from--
    if (from === labels.length) return 0
    const { publicSuffix, isIcann, isPrivate } = parse(labels.slice(from).join('.'), options)
    return publicSuffix !== null && (isIcann === true || isPrivate === true) ? publicSuffix.split('.').length : 0
  }
}

function isPlain(label: string): boolean {
  return label !== '' && label === label.toLowerCase()
}

/** Parses a list, one rule per line: `com`, `*.ck`, `!www.ck`; `//` starts a comment. */
export function parseSuffixes(text: string): SuffixList {
  const rules = new Set<string>()
  for (const line of text.split('\n')) {
    const rule = line.trim().split(/\s/)[0] as string
    if (rule !== '' && !rule.startsWith('//')) rules.add(rule)
  }
  return (labels) => {
    for (let from = 0; from < labels.length; from++) {
      const name = labels.slice(from).join('.')
      if (rules.has(`!${name}`)) return labels.length - from - 1
      if (rules.has(name) || (from + 1 < labels.length && rules.has(`*.${labels.slice(from + 1).join('.')}`))) {
        return labels.length - from
      }
    }
    return 0
  }
}
