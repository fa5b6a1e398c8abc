// Converts a Fluent Bit configuration to a Pipeline, and resolves tags: inputs whose tags match the same filters and outputs share one
// chain of transforms in the order of the file, which is the order in which Fluent Bit runs filters.

import { isDeepStrictEqual } from 'node:util'
import { complete, type Ends } from '../complete.ts'
import type { Component, Draft, Included, NamedText, Step } from '../draft.ts'
import { convertForwarded, type Forwarded } from '../fluentd/convert.ts'
import { holdsOperatorKinds } from '../fluentd/fluent-operator.ts'
import type { Refusal } from '../page.ts'
import { soundComponent } from '../sound.ts'
import { reportEarlier } from './earlier-filters.ts'
import { embedded } from './embedded.ts'
import { filters, refusedFilters } from './filters.ts'
import { inNamespace, isOfNamespace, only } from './guards.ts'
import { inputs, refusedInputs } from './inputs.ts'
import { multilineOf } from './joining.ts'
import { lineKeys, multilineFilter } from './line-key.ts'
import { nameOf, pluginOf } from './names.ts'
import { outputs, readsTag } from './outputs.ts'
import { withOwnNames } from './own-time.ts'
import { Context, type Plugin, type SourcePart } from './plugin.ts'
import { onDisk, withLabelMaps, withMatch, withoutOwnMetrics, withTags, withUpstreams } from './prepared.ts'
import { conditionOf, processors, refusedProcessors } from './processors.ts'
import { read } from './read.ts'
import { refusedOutputs } from './refused-outputs.ts'
import { holdsResources } from './resources.ts'
import { rewriteTag, rewritten } from './rewrite-tag.ts'
import { type Route, routesOf } from './routes.ts'
import { lastValue, type Place, type Section } from './sections.ts'
import { parseQuery } from './sql.ts'
import { streamTask, streamTasks, taskOptions } from './streams.ts'
import { fixedTag, type Matched, type Matches, matchesOf, type Tag, tagOf, tagTest } from './tags.ts'
import { isConfiguration } from './text.ts'
import { reportVariables, withVariables } from './variables.ts'

/** Whether a text is in the classic syntax or the YAML syntax, or contains such a text. */
export function isFluentBit(given: NamedText): boolean {
  return isConfiguration(given.text) || holdsResources(given) || embedded(given) !== undefined
}

/** The names of sections with tasks of the stream processor in both syntaxes. */
const taskKinds = ['stream_task', 'stream_processor']

/** Reads the files of one configuration, and the files they include, into a draft. */
export function convertFluentBit(files: readonly NamedText[], included: Included, draft: Draft): void {
  const { sections, found, secrets } = read(files, included, draft.gaps)
  for (const [variable, key] of secrets) draft.secrets.set(variable, key)
  const context = new Context(sections, draft.gaps, draft.namespace === undefined)
  reportUnread(sections, context)
  const ofKind = (kind: string) => sections.filter((section) => section.kind === kind)
  const own = (kind: string) => ofKind(kind).map((section) => ownNames(section, context))
  const inputs = withTags(own('input'))
  const named = withUpstreams(withLabelMaps(withMatch(inputs, own('output')), found), sections, found)
  const left = withoutOwnMetrics(inputs, named, context)
  const outputs = onDisk(left.inputs, left.outputs, context)
  const tasks = streamTasks(taskKinds.flatMap(ofKind), left.inputs, context)
  const conversion = new Conversion(draft, context, found, files)
  conversion.run(left.inputs, [...own('filter').filter(isActive), ...tasks], outputs)
}

/** Whether Fluent Bit runs a filter. */
const isActive = (section: Section) => !/^(?:false|0)$/i.test(lastValue(section, 'active') ?? '')

/** Kinds of sections that other sections refer to, or that the conversion reads. */
const knownKinds: readonly string[] = [
  ...['input', 'filter', 'output', 'parser', 'multiline_parser', 'service', ...taskKinds],
  ...['upstream', 'node', 'upstream_servers'],
]

/** Reports sections of other kinds. */
function reportUnread(sections: readonly Section[], context: Context): void {
  for (const section of sections) {
    const subject = `[${section.kind.toUpperCase()}]`
    if (section.kind === 'plugins') {
      const reason = 'it loads programs beside Fluent Bit, and sinks need none'
      context.replaced(section, subject, reason, 'Nothing to do: the report names plugins without a counterpart.')
    } else if (!knownKinds.includes(section.kind)) {
      const reason = '`convert` does not read sections of this kind'
      context.gap(section, subject, reason, 'Remove it, or add transforms for it.')
    }
  }
}

/** A plugin and its processors with the names that fields have in events. */
function ownNames(section: Section, context: Context): Section {
  const { processors: all } = section
  const named = withOwnNames(section, pluginOf(section), context)
  return all === undefined ? named : { ...named, processors: all.map((each) => ownNames(each, context)) }
}

/** Inputs that match the same filters and outputs: their names, and the last component of their chain. */
interface Chain {
  heads: string[]
  readonly tag: Tag
  readonly filters: Matches
  readonly outputs: Matches
  /** Number of times that rules have rewritten the tag of its records. */
  readonly rewrites: number
}

const maxRewrites = 4

/** Outputs of records that keep their tag: without those of routes with a condition, and with those of routes for all records. */
function withRoutes(outputs: Matches, routes: readonly Route[]): Matches {
  const chosen = new Set(routes.filter(({ condition }) => condition !== undefined).flatMap((route) => route.outputs))
  const always = routes.filter(({ condition }) => condition === undefined).flatMap((route) => route.outputs)
  return new Map([
    ...[...outputs].filter(([output]) => !chosen.has(output)),
    ...always.map((output) => [output, 'all'] as const),
  ])
}

/** Filters whose records start again with another tag. */
const retagging: readonly string[] = [rewriteTag.name, streamTask.name]

class Conversion {
  readonly #draft: Draft
  /** The place of gaps that belong to no line. */
  readonly #start: Place
  readonly #context: Context
  readonly #included: Included
  /** Files with resources of the fluent-operator for Fluentd, and the events that go there. */
  readonly #fluentdFiles: readonly NamedText[]
  readonly #forwarded: Forwarded[] = []
  /** Filters that join lines, and whose rules are those of a source or a gap. */
  readonly #joining = new Set<Section>()

  constructor(draft: Draft, context: Context, included: Included, files: readonly NamedText[]) {
    this.#draft = draft
    this.#start = { file: files[0]?.file ?? '', line: 1 }
    this.#context = context
    this.#included = included
    this.#fluentdFiles = files.filter(holdsOperatorKinds)
  }

  run(inputSections: readonly Section[], filterSections: readonly Section[], outputSections: readonly Section[]): void {
    const all = this.#begun(inputSections, filterSections, outputSections)
    const steps = new Map(
      filterSections.map((section) => {
        reportVariables(section, filters, this.#context)
        return [section, this.#filter(section)]
      }),
    )
    let current = all
    while (current.length > 0) {
      const branches: Chain[] = []
      for (const section of filterSections) {
        for (const chain of current.filter(({ filters }) => filters.has(section))) {
          this.#reportUnjoined(section)
          if (pluginOf(section) === rewriteTag.name)
            branches.push(...this.#rewrite(chain, section, filterSections, outputSections))
          else if (pluginOf(section) === streamTask.name)
            branches.push(this.#query(chain, section, filterSections, outputSections))
          else this.#apply(chain, section, steps.get(section) ?? [])
        }
      }
      all.push(...branches)
      current = branches
    }
    for (const section of outputSections) this.#sink(section, all)
    if (this.#fluentdFiles.length > 0) convertForwarded(this.#fluentdFiles, this.#forwarded, this.#draft)
    // As in Fluent Bit, records whose tag matches no output are discarded.
    this.#draft.removeUnread()
    complete(this.#draft, inputSections[0] ?? filterSections[0] ?? outputSections[0] ?? this.#start, ends)
  }

  /** Adds the sources, and returns the chains that begin there. */
  #begun(
    inputSections: readonly Section[],
    filterSections: readonly Section[],
    outputSections: readonly Section[],
  ): Chain[] {
    const chains = new Map<string, Chain>()
    const branches: Chain[] = []
    const matches = inputSections.map((section) => {
      const tag = tagOf(section)
      const routes = routesOf(section, outputSections, this.#context)
      const outputs = withRoutes(matchesOf(tag, outputSections), routes)
      return { section, tag, routes, filters: matchesOf(tag, filterSections), outputs }
    })
    const hasOutputs = matches.some(({ outputs, routes }) => outputs.size + routes.length > 0)
    for (const { section, tag, routes, filters, outputs } of matches) {
      const isOpen = routes.length === 0 && outputs.size === 0
      if (hasOutputs && isOpen && this.#isWithoutOutput(section, filters)) continue
      const head = this.#source(section, filters)
      branches.push(...routes.flatMap((route) => this.#routed(route, head, filterSections)))
      this.#reportFilters(routes, filters)
      const keys = [...filters, ...outputs].map(([other, taken]) => `${other.file}:${other.line} ${taken}`)
      const key = [...keys, this.#usesTag(filters, outputs) ? tag.text : ''].join('\n')
      const chain = chains.get(key) ?? { heads: [], tag, filters, outputs, rewrites: 0 }
      chain.heads.push(head)
      chains.set(key, chain)
    }
    return [...chains.values(), ...branches]
  }

  /** The branch of a route, whose records have its name as their tag. */
  #routed({ name, condition, outputs, section }: Route, head: string, filterSections: readonly Section[]): Chain[] {
    if (condition === undefined || outputs.length === 0) return []
    const taken = this.#append([head], [{ type: 'filter', text: condition }], name, section)
    const tag = fixedTag(name)
    const chosen = new Map(outputs.map((output) => [output, 'all'] as const))
    const filters = matchesOf(tag, filterSections)
    return [{ heads: this.#processed(taken, section), tag, filters, outputs: chosen, rewrites: 0 }]
  }

  /** Reports filters that match the tag of an input but not the names of its routes. */
  #reportFilters(routes: readonly Route[], filters: Matches): void {
    const names = routes.filter(({ condition }) => condition !== undefined).map(({ name }) => name)
    for (const filter of filters.keys()) {
      const left = names.filter((name) => matchesOf(fixedTag(name), [filter]).size === 0)
      if (left.length === 0) continue
      const reason = `the tag of records of a route is its name, so Fluent Bit does not apply the filter to those of ${left.map((name) => `\`${name}\``).join(', ')}`
      const nearest = 'Nothing to do for the same records. To apply it, set `match: "*"`, and convert again.'
      this.#context.replaced(filter, `filter ${pluginOf(filter)}`, reason, nearest)
    }
  }

  /** Whether a tag affects more than the choice of filters and outputs. */
  #usesTag(filters: Matches, outputs: Matches): boolean {
    const sections = [...filters, ...outputs]
    return sections.some(
      ([section, taken]) => taken === 'some' || readsTag(section) || pluginOf(section) === rewriteTag.name,
    )
  }

  /** Whether no output receives the records of an input. */
  #isWithoutOutput(input: Section, filters: Matches): boolean {
    if ([...filters.keys()].some((section) => retagging.includes(pluginOf(section)))) return false
    const reason = 'no output matches its tag'
    this.#context.gap(
      input,
      `input ${pluginOf(input)}`,
      reason,
      'The input is left out, because no output receives its records.',
    )
    return true
  }

  #apply(chain: Chain, section: Section, steps: readonly Step[]): void {
    if (steps.length === 0) return
    const { taken, rest } = this.#divided(chain, section, chain.filters.get(section))
    chain.heads = [...this.#append(taken, steps, nameOf(section), section), ...rest]
  }

  /** Splits the records of a chain into those that a section matches and the others. */
  #divided(chain: Chain, section: Section, taken: Matched | undefined): { taken: string[]; rest: string[] } {
    if (taken !== 'some') return { taken: chain.heads, rest: [] }
    const { program, text } = chain.tag
    if (program === undefined) {
      const match = lastValue(section, 'match')
      this.#context.gap(
        section,
        match === undefined ? `Match_Regex ${lastValue(section, 'match_regex')}` : `Match ${match}`,
        `the pattern matches some of the tags \`${text}\`, and events have no tags`,
        'The step applies to all of them. Add a condition on `.kubernetes`, or read these pods with a separate source.',
      )
      return { taken: chain.heads, rest: [] }
    }
    const step = (condition: string): Step => ({ type: 'filter', text: [...program, condition].join('\n') })
    const test = tagTest(section)
    const name = nameOf(section)
    return {
      taken: this.#append(chain.heads, [step(test)], `${name}-tag`, section),
      rest:
        section.kind === 'output' ? [] : this.#append(chain.heads, [step(`!${test}`)], `${name}-other-tags`, section),
    }
  }

  /** Splits a chain by the rules of a filter: returns the branches, and leaves records that keep their tag in the chain. */
  #rewrite(
    chain: Chain,
    section: Section,
    filterSections: readonly Section[],
    outputSections: readonly Section[],
  ): readonly Chain[] {
    const { branches, rest } = rewritten(section, this.#context, chain.tag)
    const name = nameOf(section)
    const divided = this.#divided(chain, section, chain.filters.get(section))
    const made = branches.flatMap(({ tag, condition }, index): Chain[] => {
      if (chain.rewrites >= maxRewrites) {
        this.#context.gap(
          section,
          'rewrite_tag',
          `rules would rewrite the tag of a record more than ${maxRewrites} times`,
          'Check whether rules match the tags that they set.',
        )
        return []
      }
      // A record that matches the same rule again would loop forever.
      const filters = matchesOf(
        tag,
        filterSections.filter((filter) => filter !== section),
      )
      const outputs = matchesOf(tag, outputSections)
      const isKept = tag.samples.length > 1 && tag.program !== undefined && this.#usesTag(filters, outputs)
      const steps: Step[] = [
        { type: 'filter', text: condition },
        ...(isKept ? [{ type: 'remap', text: [...(tag.program ?? []), '%tag = tag'].join('\n') } as const] : []),
      ]
      const heads = this.#append(divided.taken, steps, `${name}-${index + 1}`, section)
      const own = isKept ? { ...tag, program: ['tag = string(%tag) ?? ""'] } : tag
      return [{ heads, tag: own, filters, outputs, rewrites: chain.rewrites + 1 }]
    })
    const kept =
      rest === undefined
        ? divided.taken
        : this.#append(divided.taken, [{ type: 'filter', text: rest }], `${name}-rest`, section)
    chain.heads = [...kept, ...divided.rest]
    return made
  }

  /** A branch with the results of a query; the records themselves stay in the chain. */
  #query(
    chain: Chain,
    section: Section,
    filterSections: readonly Section[],
    outputSections: readonly Section[],
  ): Chain {
    const query = parseQuery(lastValue(section, taskOptions.query) ?? '')
    const { taken } = this.#divided(chain, section, chain.filters.get(section))
    const steps = 'problem' in query ? [] : query.steps
    const heads = this.#append(taken, steps, nameOf(section), section)
    const tag = fixedTag(lastValue(section, taskOptions.tag) ?? '')
    const others = filterSections.filter((each) => each !== section && chain.rewrites < maxRewrites)
    return {
      heads,
      tag,
      filters: matchesOf(tag, others),
      outputs: matchesOf(tag, outputSections),
      rewrites: chain.rewrites + 1,
    }
  }

  #source(section: Section, matching: Matches): string {
    const name = nameOf(section)
    reportVariables(section, inputs, this.#context)
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
    const whole = this.#joinedBy(component, section, matching)
    const origin = { file: section.file, line: section.line, subject: `input ${pluginOf(section)}` }
    const source = this.#draft.add('sources', name, soundComponent('source', whole, origin, this.#draft.gaps))
    const heads = this.#append([source], steps, `${name}-record`, section)
    return this.#processed(heads, section)[0] ?? source
  }

  /** The source, which joins lines by the rules of the filters `multiline` that match its records. */
  #joinedBy(component: Component, input: Section, matching: Matches): Component {
    const isPods = component.type === 'orchestrator_logs'
    let whole = component
    const earlier: Section[] = []
    for (const [filter, taken] of matching) {
      const joined = pluginOf(filter) === multilineFilter.name ? multilineOf(filter, this.#context) : undefined
      const before = [...earlier]
      if (joined !== undefined) this.#joining.add(filter)
      const isOfLine = joined === undefined || this.#joinsLine(filter, input, before)
      earlier.push(filter)
      if (joined === undefined || !isOfLine) continue
      reportEarlier(filter, joined, input, before, this.#context)
      if (taken === 'some') {
        const nearest = 'Read the files of these tags with a separate source.'
        this.#context.gap(filter, 'multiline', 'the source joins lines for all its tags', nearest)
      }
      const present = isPods ? whole.multiline : whole.config?.['multiline']
      const rules = isPods ? joined.pods : joined.file
      if (present === undefined) {
        whole = isPods ? { ...whole, multiline: rules } : { ...whole, config: { ...whole.config, multiline: rules } }
      } else if (!isDeepStrictEqual(present, rules)) {
        const reason = 'a source joins lines once, and the input or an earlier filter has other rules'
        const nearest = 'Merge its rules into the patterns of `multiline` of the source.'
        this.#context.gap(filter, 'multiline', reason, nearest)
      }
    }
    return whole
  }

  /** Reports a filter that joins lines only of records with another tag than that of an input. */
  #reportUnjoined(section: Section): void {
    if (pluginOf(section) !== multilineFilter.name || this.#joining.has(section)) return
    if (multilineOf(section, this.#context.silent()) === undefined) return
    this.#joining.add(section)
    const reason = 'a source joins lines, and this filter joins those of a tag that an earlier step sets'
    const nearest =
      'Set `multiline` of the source, if it may join all its lines; or read these files with a separate source.'
    this.#context.gap(section, 'multiline', reason, nearest)
  }

  /** Whether a filter joins the lines as read, which the source can do. Otherwise it is a gap. */
  #joinsLine(filter: Section, input: Section, before: readonly Section[]): boolean {
    const key = lastValue(filter, 'multiline.key_content') ?? 'log'
    const keys = lineKeys(input, before, this.#context)
    if (keys.has(key)) return true
    const [own] = keys
    this.#context.gap(
      filter,
      `multiline.key_content ${key}`,
      own === undefined
        ? 'a source joins lines before they are parsed, and the filter joins a field of the parsed line'
        : `a source joins lines, and the field with the line is \`${own}\``,
      'Set `multiline` of the source, with patterns for the complete line.',
    )
    return false
  }

  /** Adds the processors of an input or an output, and returns the last component. */
  #processed(heads: readonly string[], { processors: own = [] }: Section): string[] {
    return own.reduce<string[]>(
      (current, section) => {
        reportVariables(section, [...processors, ...filters], this.#context)
        const plugin = this.#find(section, [...processors, ...filters], [...refusedProcessors, ...refusedFilters])
        const steps = plugin?.build(section, this.#context) ?? this.#refused(section)
        const condition = plugin === undefined ? undefined : conditionOf(section, this.#context)
        const guarded = condition === undefined ? steps : only(condition, steps)
        return this.#append(current, guarded, `${pluginOf(section)}-processor`, section)
      },
      [...heads],
    )
  }

  #filter(section: Section): readonly Step[] {
    if (pluginOf(section) === streamTask.name) return []
    const special = [multilineFilter, rewriteTag].find(({ name }) => name === pluginOf(section))
    if (special !== undefined) {
      this.#context.reportOptions(section, special)
      return []
    }
    const plugin = this.#find(section, filters, refusedFilters)
    if (plugin === undefined) return this.#refused(section)
    const condition = conditionOf(section, this.#context)
    const steps = plugin.build(section, this.#context)
    return inNamespace(section, condition === undefined ? steps : only(condition, steps))
  }

  /** The placeholder step for a filter without a counterpart. */
  #refused(section: Section): readonly Step[] {
    const comments = [
      `GAP: the ${section.kind} \`${pluginOf(section)}\` (${section.file}:${section.line}) has no counterpart. Events pass unchanged.`,
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

  #sink(section: Section, chains: readonly Chain[]): void {
    const name = nameOf(section)
    const arriving = chains.filter((chain) => chain.outputs.has(section))
    if (arriving.length === 0) {
      this.#context.gap(
        section,
        `output ${pluginOf(section)}`,
        'it matches the tag of no input',
        'The output is left out, because it receives nothing.',
      )
      return
    }
    const arrivals = arriving.map((chain) => ({
      tag: chain.tag,
      heads: this.#divided(chain, section, chain.outputs.get(section)).taken,
    }))
    if (this.#fluentdFiles.length > 0 && pluginOf(section) === 'forward') {
      this.#forward(section, arrivals)
      return
    }
    const plugin = this.#find(section, outputs, refusedOutputs)
    if (plugin === undefined) {
      const comments = [
        `GAP: the output \`${pluginOf(section)}\` (${section.file}:${section.line}) has no counterpart. This sink discards its events.`,
      ]
      this.#draft.add('sinks', name, { type: 'blackhole', inputs: arrivals.flatMap(({ heads }) => heads), comments })
      return
    }
    const { heads, program } = this.#tagged(section, arrivals)
    const part = plugin.build(section, this.#context, program)
    const { component, steps } = withVariables(part, section, plugin, this.#context)
    const { namespace } = section
    const chosen: readonly Step[] =
      namespace === undefined ? steps : [{ type: 'filter', text: isOfNamespace(namespace) }, ...steps]
    const origin = { file: section.file, line: section.line, subject: `output ${pluginOf(section)}` }
    this.#draft.add('sinks', name, {
      ...soundComponent('sink', component, origin, this.#draft.gaps),
      inputs: this.#append(this.#processed(heads, section), chosen, `${name}-form`, section),
    })
  }

  /** Records for Fluentd, whose resources are among the files. */
  #forward(section: Section, arrivals: readonly { readonly heads: readonly string[]; readonly tag: Tag }[]): void {
    const reason = 'it sends to Fluentd, whose resources are among the files'
    this.#context.replaced(section, 'output forward', reason, 'Nothing: the steps of Fluentd follow in the Pipeline.')
    const named = lastValue(section, 'tag')
    for (const { heads, tag } of arrivals) {
      const own = named ?? tag.text
      this.#forwarded.push({
        heads: this.#processed(heads, section),
        tag: { text: own, isOfPods: named === undefined && tag.isOfPods === true },
      })
    }
  }

  /** Heads whose records get the variable `tag` from a program. If tags differ, each head gets its own program. */
  #tagged(
    section: Section,
    arrivals: readonly { readonly heads: readonly string[]; readonly tag: Tag }[],
  ): { readonly heads: string[]; readonly program: readonly string[] } {
    const heads = arrivals.flatMap((arrival) => arrival.heads)
    const programs = new Set(arrivals.map(({ tag }) => tag.program?.join('\n')))
    if (!readsTag(section)) return { heads, program: [] }
    if (programs.has(undefined)) {
      const nearest = 'Set the field in a remap transform before the sink.'
      this.#context.gap(section, `${pluginOf(section)}: tag`, 'a part of the tag is unknown', nearest)
      return { heads, program: ['tag = ""'] }
    }
    if (programs.size === 1) return { heads, program: arrivals[0]?.tag.program ?? [] }
    const own = arrivals.flatMap(({ heads, tag }) => {
      const text = [...(tag.program ?? []), '%tag = tag'].join('\n')
      return this.#append(heads, [{ type: 'remap', text }], `${nameOf(section)}-with-tag`, section)
    })
    return { heads: own, program: ['tag = string(%tag) ?? ""'] }
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
    const script = lastValue(section, 'script')
    const isMissing = refusal !== undefined && script !== undefined && this.#included(script, section.file).length === 0
    const nearest = `Rewrite the program as a remap transform. The file \`${script}\` was not given: to have its text in the comment, put it next to the configuration, set \`script\` to its name, and convert again.`
    this.#context.missing(section, `${section.kind} ${wanted}`, isMissing ? { ...refusal, nearest } : refusal)
    return undefined
  }
}

const ends: Ends = {
  source: {
    subject: 'inputs',
    reason: 'the configuration has no input',
    comment: 'the configuration has no input.',
  },
  sink: {
    subject: 'outputs',
    reason: 'no output of the configuration receives events',
    comment: 'the configuration has no output.',
  },
}
