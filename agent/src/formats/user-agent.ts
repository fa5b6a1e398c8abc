// Parses user agents with two data sets: a small one that identifies browsers, systems and categories by their main features, and
// a large one of regular expressions. Both are loaded on first use.

import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { compileBounded } from './regex-linear.ts'

const require = createRequire(import.meta.url)
// A longer text is not a user agent; the expressions only see its beginning.
const maxCharacters = 2000

export interface KnownAgent {
  readonly browser: string | null
  readonly browserVersion: string | null
  readonly os: string | null
  readonly osVersion: string | null
  readonly category: string | null
}

interface SmallDataSet {
  parse(agent: string): Readonly<Record<'name' | 'version' | 'os' | 'os_version' | 'category', string | undefined>>
}

let small: SmallDataSet | undefined

/** The result of the small data set. */
export function knownAgent(agent: string): KnownAgent {
  small ??= require('woothee') as SmallDataSet
  const found = small.parse(agent.slice(0, maxCharacters))
  const known = (text: string | undefined): string | null =>
    text === undefined || text === '' || text === 'UNKNOWN' ? null : text
  return {
    browser: known(found.name),
    browserVersion: known(found.version),
    os: known(found.os),
    osVersion: known(found.os_version),
    category: known(found.category),
  }
}

export interface MatchedAgent {
  /** Name, followed by the parts of its version. */
  readonly browser: readonly (string | null)[]
  readonly os: readonly (string | null)[]
  /** Name, brand and model. */
  readonly device: readonly (string | null)[]
}

type Rule = Readonly<Record<string, string>>

interface LargeDataSet {
  readonly browsers: readonly Matcher[]
  readonly systems: readonly Matcher[]
  readonly devices: readonly Matcher[]
}

type Matcher = (agent: string) => (string | null)[] | undefined

let large: LargeDataSet | undefined

/** The result of the regular expressions; all null if none matches. */
export function matchedAgent(agent: string): MatchedAgent {
  large ??= load()
  const text = agent.slice(0, maxCharacters)
  return {
    browser: first(large.browsers, text) ?? [null, null, null, null],
    os: first(large.systems, text) ?? [null, null, null, null, null],
    device: first(large.devices, text) ?? [null, null, null],
  }
}

function first(matchers: readonly Matcher[], text: string): (string | null)[] | undefined {
  for (const matcher of matchers) {
    const found = matcher(text)
    if (found !== undefined) return found
  }
  return undefined
}

/** The file is large, but simple YAML: lists of maps of quoted texts. So it is read line by line. */
function load(): LargeDataSet {
  const sections = new Map<string, Rule[]>()
  let rules: Rule[] = []
  let rule: Record<string, string> = {}
  for (const line of readFileSync(require.resolve('uap-core/regexes.yaml'), 'utf8').split('\n')) {
    const section = /^(\w+):\s*$/.exec(line)
    if (section !== null) {
      rules = []
      sections.set(section[1] as string, rules)
      continue
    }
    const entry = /^\s+(- )?(\w+): *'(.*)'\s*$/.exec(line)
    if (entry === null) continue
    if (entry[1] !== undefined) {
      rule = {}
      rules.push(rule)
    }
    rule[entry[2] as string] = (entry[3] as string).replaceAll("''", "'")
  }
  const compiled = (name: string, parts: readonly string[], fromGroups: boolean): Matcher[] =>
    (sections.get(name) ?? []).map((rule) => matcherOf(rule, parts, fromGroups))
  return {
    browsers: compiled('user_agent_parsers', ['family', 'v1', 'v2', 'v3'], true),
    systems: compiled('os_parsers', ['os', 'os_v1', 'os_v2', 'os_v3', 'os_v4'], true),
    devices: compiled('device_parsers', ['device', 'brand', 'model'], false),
  }
}

/**
 * @param fromGroups whether parts without a replacement are the groups in order; otherwise only the first and last parts are the first
 * group
 */
function matcherOf(rule: Rule, parts: readonly string[], fromGroups: boolean): Matcher {
  const source = rule['regex'] as string
  const flags = rule['regex_flag'] ?? ''
  let regex: RegExp | undefined
  return (agent) => {
    regex ??= compileBounded(source, flags)
    const match = regex.exec(agent)
    if (match === null) return undefined
    return parts.map((part, index) => {
      const replacement = rule[`${part}_replacement`]
      if (replacement !== undefined) {
        const text = replacement.replace(/\$([1-9])/g, (_, group: string) => match[Number(group)] ?? '').trim()
        return text === '' ? null : text
      }
      const group = fromGroups ? match[index + 1] : part === 'brand' ? undefined : match[1]
      const text = group?.trim() ?? ''
      return text === '' ? null : text
    })
  }
}
