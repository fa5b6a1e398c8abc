// A Fluent Bit configuration to a Pipeline. Tags are resolved here: inputs whose tags the same filters and outputs match share one chain of
// transforms, in the order of the file, as records pass through Fluent Bit.

import { textLiteral } from '@penstock/agent/config'
import type { Draft, Gap, Included, NamedText, SecretKey, Step } from '../draft.ts'
import { includedFrom } from '../inner.ts'
import type { Refusal } from '../page.ts'
import { readClassic } from './classic.ts'
import { embedded } from './embedded.ts'
import { filters, refusedFilters } from './filters.ts'
import { inputs, refusedInputs } from './inputs.ts'
import { multilineOf } from './joining.ts'
import { outputs, refusedOutputs } from './outputs.ts'
import { Context, common, matched, type Plugin, type SourcePart } from './plugin.ts'
import { holdsResources, sectionsOf } from './resources.ts'
import { rewriteTag, rewritten } from './rewrite-tag.ts'
import { type Entry, lastValue, type Place, type Section, type SectionFile } from './sections.ts'
import { globPattern, isClassic, isConfiguration } from './text.ts'
import { readYaml } from './yaml.ts'

const maxFiles = 100

/** The filter is part of a source; see `multilineOf`. */
const multilineFilter = {
  name: 'multiline',
  options: {
    ...common,
    ...matched,
    'multiline.parser': '`multiline` of the source',
    'multiline.key_content': 'the line of the source',
  },
  itself: {
    mode: 'the source joins parts by itself',
    flush_ms: 'the time of the parser counts',
    buffer: 'the source joins lines of one file or container alone',
    emitter_name: 'there is no emitter',
    emitter_mem_buf_limit: 'there is no emitter',
    'emitter_storage.type': 'there is no emitter',
  },
} as const

/** Whether a text has the sections of the classic syntax, or the lists of the YAML syntax, or holds such a text. */
export function isFluentBit(given: NamedText): boolean {
  return isConfiguration(given.text) || holdsResources(given) || embedded(given) !== undefined
}

/** Reads the files of one configuration, with those that they include, into a draft. */
export function convertFluentBit(files: readonly NamedText[], included: Included, draft: Draft): void {
  const { sections, found, secrets } = read(files, included, draft.gaps)
  for (const [variable, key] of secrets) draft.secrets.set(variable, key)
  const context = new Context(sections, draft.gaps)
  for (const section of sections) {
    if (['input', 'filter', 'output', 'parser', 'multiline_parser', 'service'].includes(section.kind)) continue
    context.gap(
      section,
      `[${section.kind.toUpperCase()}]`,
      'sections of this kind are not read',
      'Leave it out, or add transforms for it.',
    )
  }
  const ofKind = (kind: string) => sections.filter((section) => section.kind === kind)
  new Conversion(draft, context, found, files[0]?.file ?? '').run(ofKind('input'), ofKind('filter'), ofKind('output'))
}

export function load(files: readonly NamedText[], included: Included, gaps: Gap[]): Section[] {
  return read(files, included, gaps).sections
}

interface Configuration {
  readonly sections: Section[]
  /** Finds the files of the configuration. */
  readonly found: Included
  /** Keys of Secrets that variables stand for. */
  readonly secrets: ReadonlyMap<string, SecretKey>
}

function read(given: readonly NamedText[], besides: Included, gaps: Gap[]): Configuration {
  const resources = sectionsOf(given.filter(holdsResources), gaps)
  const files = given.filter((file) => !holdsResources(file))
  const inner = files.map((given) => embedded(given))
  const mains = files.flatMap((given, index) => inner[index]?.mains ?? [given])
  const beside = [...resources.scripts, ...inner.flatMap((each) => each?.all ?? [])]
  const included = includedFrom(beside, besides)
  const sections: Section[] = [...resources.sections]
  const variables = new Map<string, string>(inner.flatMap((each) => [...(each?.variables ?? [])]))
  const seen = new Set<string>()
  const take = ({ file, text }: NamedText): void => {
    const key = `${file}\n${text}`
    if (seen.has(key) || seen.size >= maxFiles) return
    seen.add(key)
    const found: SectionFile =
      /\.ya?ml$/i.test(file) && !isClassic(text) ? readYaml(text, file) : readClassic(text, file)
    for (const { reason, ...place } of found.unread) {
      gaps.push({ ...place, subject: file, reason, nearest: 'Correct the file, or leave the text out.' })
    }
    for (const [name, value] of found.variables) variables.set(name, value)
    const parserFiles = found.sections
      .filter(({ kind }) => kind === 'service')
      .flatMap(({ entries }) => entries.filter(({ key }) => key === 'parsers_file'))
    const follow = (entry: Entry): void => {
      const files = included(entry.value, file)
      if (files.length === 0) {
        gaps.push({
          file: entry.file,
          line: entry.line,
          subject: entry.value,
          reason: 'the file cannot be read',
          nearest: 'Put the file beside the configuration, and convert again.',
        })
      }
      for (const next of files) take(next)
    }
    // The order of plugins counts, so an included file stands where it is included.
    const parts = [...found.sections, ...found.includes].sort((a, b) => a.line - b.line)
    for (const part of parts) {
      if ('entries' in part) sections.push(part)
      else follow(part)
    }
    // The parsers that Fluent Bit ships are known without their file.
    for (const entry of parserFiles) if (included(entry.value, file).length > 0) follow(entry)
  }
  for (const main of mains) take(main)
  const resolve = (text: string) =>
    text.replace(/\$\{([A-Za-z0-9_]+)\}/g, (whole, name: string) => variables.get(name) ?? whole)
  for (const { kind, entries } of sections) {
    if (kind === 'service') continue
    for (const { value, ...place } of entries.filter(({ value }) => /\{\{.*\}\}/.test(value))) {
      const reason = 'templates of the chart are not filled in'
      gaps.push({
        file: place.file,
        line: place.line,
        subject: value,
        reason,
        nearest: 'Convert what `helm template` gives.',
      })
    }
  }
  const resolved = sections.map((section) => ({
    ...section,
    entries: section.entries.map((entry) => ({ ...entry, value: resolve(entry.value) })),
  }))
  return { sections: resolved, found: included, secrets: resources.secrets }
}

/** Inputs that the same filters and outputs match: their names, and where their events are now. */
interface Chain {
  heads: string[]
  readonly filters: ReadonlySet<Section>
  readonly outputs: ReadonlySet<Section>
  /** How often its records have got a new tag. */
  readonly rewrites: number
}

const maxRewrites = 4

class Conversion {
  readonly #draft: Draft
  /** For parts without a place. */
  readonly #start: Place
  readonly #context: Context
  readonly #included: Included

  constructor(draft: Draft, context: Context, included: Included, file: string) {
    this.#draft = draft
    this.#start = { file, line: 1 }
    this.#context = context
    this.#included = included
  }

  run(inputSections: readonly Section[], filterSections: readonly Section[], outputSections: readonly Section[]): void {
    const chains = new Map<string, Chain>()
    const matches = inputSections.map((section) => ({
      section,
      filters: this.#matching(section, filterSections),
      outputs: this.#matching(section, outputSections),
    }))
    const areSomeHeard = matches.some(({ outputs }) => outputs.length > 0)
    for (const { section, filters, outputs } of matches) {
      if (areSomeHeard && outputs.length === 0 && this.#isUnheard(section, filters)) continue
      const head = this.#source(section, filters)
      const key = [...filters, ...outputs].map((other) => `${other.file}:${other.line}`).join(' ')
      const chain = chains.get(key) ?? { heads: [], filters: new Set(filters), outputs: new Set(outputs), rewrites: 0 }
      chain.heads.push(head)
      chains.set(key, chain)
    }
    const all = [...chains.values()]
    const branchesOf = (chain: Chain, section: Section) => this.#rewrite(chain, section, filterSections, outputSections)
    const steps = new Map(
      filterSections.map((section) => {
        this.#reportVariables(section)
        return [section, this.#filter(section)]
      }),
    )
    let current = all
    while (current.length > 0) {
      const branches: Chain[] = []
      for (const section of filterSections) {
        for (const chain of current.filter(({ filters }) => filters.has(section))) {
          if (pluginOf(section) === rewriteTag.name) branches.push(...branchesOf(chain, section))
          else chain.heads = this.#append(chain.heads, steps.get(section) ?? [], nameOf(section), section)
        }
      }
      all.push(...branches)
      current = branches
    }
    for (const section of outputSections) {
      const heads = all.filter((chain) => chain.outputs.has(section)).flatMap((chain) => chain.heads)
      this.#sink(section, heads)
    }
    // Records whose tag no output matches go nowhere, as in Fluent Bit.
    if (all.some(({ rewrites }) => rewrites > 0)) this.#draft.removeUnread()
    this.#complete(inputSections[0] ?? filterSections[0] ?? outputSections[0])
  }

  /** Whether records of an input go nowhere. */
  #isUnheard(input: Section, filters: readonly Section[]): boolean {
    if (filters.some((section) => pluginOf(section) === rewriteTag.name)) return false
    const reason = 'no output matches its tag'
    this.#context.gap(input, `input ${pluginOf(input)}`, reason, 'The input is left out, as its records go nowhere.')
    return true
  }

  #matching(input: Section, sections: readonly Section[]): Section[] {
    return sections.filter((other) => this.#isMatched(input, other))
  }

  /** Splits a chain by the rules of a filter: gives the branches, and leaves in the chain what keeps its tag. */
  #rewrite(
    chain: Chain,
    section: Section,
    filterSections: readonly Section[],
    outputSections: readonly Section[],
  ): readonly Chain[] {
    const { branches, rest } = rewritten(section, this.#context)
    const name = nameOf(section)
    const made = branches.flatMap(({ input, condition }, index): Chain[] => {
      if (chain.rewrites >= maxRewrites) {
        this.#context.gap(
          section,
          'rewrite_tag',
          `records would be given a new tag more than ${maxRewrites} times`,
          'Look whether rules match the tags that they give.',
        )
        return []
      }
      const step = { type: 'filter', text: condition } as const
      const heads = this.#append(chain.heads, [step], `${name}-${index + 1}`, section)
      // A record that meets its own rule again would go around forever.
      const filters = this.#matching(input, filterSections).filter((filter) => filter !== section)
      const outputs = this.#matching(input, outputSections)
      return [{ heads, filters: new Set(filters), outputs: new Set(outputs), rewrites: chain.rewrites + 1 }]
    })
    if (rest !== undefined)
      chain.heads = this.#append(chain.heads, [{ type: 'filter', text: rest }], `${name}-rest`, section)
    return made
  }

  /** Whether a filter or output takes the events of an input. A tag with `*` matches all tags with that beginning. */
  #isMatched(input: Section, other: Section): boolean {
    const tag = lastValue(input, 'tag') ?? `${lastValue(input, 'name')}.0`
    const match = lastValue(other, 'match')
    const regex = lastValue(other, 'match_regex')
    if (match === undefined && regex === undefined) return false
    const pattern = new RegExp(match === undefined ? rubyLike(regex ?? '') : globPattern(match))
    const samples = samplesOf(tag, lastValue(input, 'path') ?? '')
    const taken = samples.filter((sample) => pattern.test(sample)).length
    if (taken === samples.length) return true
    // A pattern with another beginning matches none of the tags; otherwise it may match some of them.
    const fixed = tag.split('*')[0] ?? ''
    const start = match?.split('*')[0] ?? ''
    if (!tag.includes('*') || (match !== undefined && !start.startsWith(fixed) && !fixed.startsWith(start)))
      return false
    this.#context.gap(
      other,
      match === undefined ? `Match_Regex ${regex}` : `Match ${match}`,
      `the pattern chooses some of the tags \`${tag}\`, and events have no tags`,
      'The step applies to all of them. Give it a condition by `.kubernetes`, or read these pods by a source of their own.',
    )
    return true
  }

  #source(section: Section, matching: readonly Section[]): string {
    const name = nameOf(section)
    this.#reportVariables(section)
    const plugin = this.#find(section, inputs, refusedInputs)
    if (plugin === undefined) {
      const comments = [
        `GAP: the input \`${pluginOf(section)}\` (${section.file}:${section.line}) has no counterpart. This source reads nothing.`,
      ]
      return this.#draft.add('sources', name, {
        type: 'file',
        config: { include: [`/var/empty/${name.replace(/[^\w-]/g, '-')}`] },
        comments,
      })
    }
    const { component, steps }: SourcePart = plugin.build(section, this.#context)
    const joining = matching.find((filter) => pluginOf(filter) === 'multiline')
    const joined = joining === undefined ? undefined : multilineOf(joining, this.#context)
    const isPods = component.type === 'orchestrator_logs'
    const whole =
      joined === undefined
        ? component
        : isPods
          ? { ...component, multiline: joined.pods }
          : { ...component, config: { ...component.config, multiline: joined.file } }
    const source = this.#draft.add('sources', name, whole)
    return this.#append([source], steps, `${name}-record`, section)[0] ?? source
  }

  #filter(section: Section): readonly Step[] {
    const special = [multilineFilter, rewriteTag].find(({ name }) => name === pluginOf(section))
    if (special !== undefined) {
      this.#context.reportOptions(section, special)
      return []
    }
    const plugin = this.#find(section, filters, refusedFilters)
    if (plugin !== undefined) return inNamespace(section, plugin.build(section, this.#context))
    const comments = [
      `GAP: the filter \`${pluginOf(section)}\` (${section.file}:${section.line}) has no counterpart. Events pass unchanged.`,
    ]
    const script = lastValue(section, 'script')
    const texts =
      script === undefined
        ? []
        : this.#included(script, section.file).map(({ text }) => text.replace(/^\n+/, '').trimEnd())
    const code = lastValue(section, 'code')
    const kept = [...texts, ...(code === undefined ? [] : [code])]
    if (kept.length > 0) comments.push('Its program:', ...kept)
    return [{ type: 'remap', text: '.', comments }]
  }

  #sink(section: Section, heads: readonly string[]): void {
    const name = nameOf(section)
    if (heads.length === 0) {
      this.#context.gap(
        section,
        `output ${pluginOf(section)}`,
        'no input has a tag that it matches',
        'The output is left out, as it receives nothing.',
      )
      return
    }
    const plugin = this.#find(section, outputs, refusedOutputs)
    if (plugin === undefined) {
      const comments = [
        `GAP: the output \`${pluginOf(section)}\` (${section.file}:${section.line}) has no counterpart. This sink discards its events.`,
      ]
      this.#draft.add('sinks', name, { type: 'blackhole', inputs: heads, comments })
      return
    }
    const { component, steps } = plugin.build(section, this.#context)
    const { namespace } = section
    const chosen: readonly Step[] =
      namespace === undefined ? steps : [{ type: 'filter', text: isOfNamespace(namespace) }, ...steps]
    this.#draft.add('sinks', name, { ...component, inputs: this.#append(heads, chosen, `${name}-form`, section) })
  }

  #append(heads: readonly string[], steps: readonly Step[], name: string, section: Section): string[] {
    const { file, line, kind } = section
    return this.#draft.append(heads, steps, name, { file, line, subject: `${kind} ${pluginOf(section)}` })
  }

  #find<Result>(
    section: Section,
    plugins: readonly Plugin<Result>[],
    refusals: readonly Refusal[],
  ): Plugin<Result> | undefined {
    const wanted = pluginOf(section)
    const plugin = plugins.find(({ name }) => name === wanted)
    if (plugin !== undefined) {
      this.#context.reportOptions(section, plugin)
      return plugin
    }
    const refusal = refusals.find(({ name }) => name === wanted)
    this.#context.gap(
      section,
      `${section.kind} ${wanted}`,
      refusal?.reason ?? 'the plugin is not known',
      refusal?.nearest ?? 'See `penstock-agent list` for components.',
    )
    return undefined
  }

  /** Sinks take variables as secrets; a program cannot. */
  #reportVariables(section: Section): void {
    for (const entry of section.entries) {
      for (const [whole] of entry.value.matchAll(/\$\{[A-Za-z0-9_]+\}/g)) {
        this.#context.gap(
          entry,
          whole,
          'a resource is literal text, and the variable of the environment has no value here',
          'Write the value in its place, or set the field from `.kubernetes`.',
        )
      }
    }
  }

  /** A Pipeline needs a source and a sink. */
  #complete(at: Place | undefined): void {
    const place = at ?? this.#start
    if (this.#draft.count('sources') === 0) {
      this.#context.gap(place, 'inputs', 'the configuration has no input', 'Replace the source `nothing`.')
      this.#draft.add('sources', 'nothing', {
        type: 'file',
        config: { include: ['/var/empty/nothing'] },
        comments: ['GAP: the configuration has no input.'],
      })
    }
    if (this.#draft.count('sinks') === 0) {
      this.#context.gap(
        place,
        'outputs',
        'the configuration has no output that receives anything',
        'Replace the sink `discarded`.',
      )
      this.#draft.add('sinks', 'discarded', {
        type: 'blackhole',
        inputs: ['*'],
        comments: ['GAP: the configuration has no output.'],
      })
    }
  }
}

const isOfNamespace = (namespace: string) => `%orchestrator.pod_namespace == ${textLiteral(namespace)}`

/** Steps for the logs of one namespace; others pass as they are. */
function inNamespace({ namespace }: Section, steps: readonly Step[]): readonly Step[] {
  if (namespace === undefined) return steps
  const test = isOfNamespace(namespace)
  return steps.map((step) => ({
    ...step,
    text:
      step.type === 'filter'
        ? `if ${test} {\n${step.text.replace(/^/gm, '  ')}\n} else { true }`
        : `if ${test} {\n${step.text.replace(/^/gm, '  ')}\n}`,
  }))
}

/** Tags of an input, as unlike each other as can be. */
function samplesOf(tag: string, path: string): readonly string[] {
  if (!tag.includes('*')) return [tag]
  const file = path.split(',')[0]?.trim().replaceAll('/', '.').replace(/^\./, '') || '*'
  return ['a-1_b_c-0123456789abcdef', 'zz-9_yy_xx-fedcba9876543210'].map((name) =>
    tag.replace('*', () => file.replaceAll('*', name)),
  )
}

/** An expression of Ruby as one of JavaScript, as far as expressions on tags go. */
function rubyLike(text: string): string {
  const plain = text
    .replace(/^\/(.*)\/[a-z]*$/s, '$1')
    .replaceAll('\\A', '^')
    .replace(/\\[zZ]/g, '$')
    .replaceAll('\\h', '[0-9a-fA-F]')
  try {
    new RegExp(plain)
    return plain
  } catch {
    // An expression that is not valid here chooses none of the samples, and is a gap.
    return '(?!)'
  }
}

export function pluginOf(section: Section): string {
  return (lastValue(section, 'name') ?? '').toLowerCase()
}

export function nameOf(section: Section): string {
  return lastValue(section, 'alias') ?? `${pluginOf(section)}-${section.kind === 'filter' ? 'filter' : section.kind}`
}
