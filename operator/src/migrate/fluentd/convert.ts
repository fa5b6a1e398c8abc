// Converts a Fluentd configuration to a Pipeline. Follows events through Fluentd by their tags: the filters of a label in order, up to the
// first element that matches, and from there through copies, labels and new tags.

import { fieldLiteral, textLiteral } from '@penstock/agent/config'
import { complete, type Ends } from '../complete.ts'
import type { Draft, Gap, Included, NamedText, Step } from '../draft.ts'
import { Context } from '../fluent-bit/plugin.ts'
import { lastValue, type Place } from '../fluent-bit/sections.ts'
import { pattern } from '../fluent-bit/text.ts'
import type { Described, Refusal } from '../page.ts'
import { soundComponent } from '../sound.ts'
import { childrenOf, isOn, type Plugged, sectionOf } from './element.ts'
import { elementsIn } from './files.ts'
import { filters, openOptions, refusedFilters } from './filters.ts'
import { flows, treeOf } from './flows.ts'
import { holdsOperatorKinds, operatorElements } from './fluent-operator.ts'
import { always, common, endsLines, inputs, refusedInputs, replacedInputs } from './inputs.ts'
import { Joins, stepsOfParts } from './joins.ts'
import { outputs, refusedOutputs, secondaryOf } from './outputs.ts'
import { parserOfLines } from './parsers.ts'
import { recordReformer, reformed } from './reform.ts'
import { reportNames, reportVariables } from './reports.ts'
import { elementsOf, holdsResources } from './resources.ts'
import { normalised, prefixed, retagged, rulesOf } from './retag.ts'
import { roundRobin, sharesOf } from './roundrobin.ts'
import { labelRouter, routesOf } from './router.ts'
import { recordPath } from './ruby.ts'
import type { Element } from './syntax.ts'
import { isOld } from './syntax.ts'
import { anyTag, isKnown, matchOf, patternOf, podFileSamples, type Tag, tagProgram } from './tags.ts'
import { reportUnreached } from './unreached.ts'

const errorLabel = '@ERROR'

/** Maximum number of times that events may get a new tag or label. */
const maxHops = 8

/** Reads the files of one configuration, and the files they include, into a draft. */
export function convertFluentd(files: readonly NamedText[], included: Included, draft: Draft): void {
  const isOfOperator = (file: NamedText) => holdsResources(file) || holdsOperatorKinds(file)
  const elements = [
    ...elementsIn(
      files.filter((file) => !isOfOperator(file)),
      included,
      draft.gaps,
    ),
    ...elementsOf(files.filter(holdsResources), draft),
    ...operatorElements(files.filter(holdsOperatorKinds), draft, false),
  ]
  new Conversion(draft, elements, files[0]?.file ?? '').run()
}

/** Events that Fluent Bit forwards: the transforms that they come from, and their tag. */
export interface Forwarded {
  readonly heads: readonly string[]
  readonly tag: Tag
}

/** Leads events that Fluent Bit forwards through the resources of the fluent-operator for Fluentd. */
export function convertForwarded(files: readonly NamedText[], forwarded: readonly Forwarded[], draft: Draft): void {
  const elements = operatorElements(files, draft, forwarded.length > 0)
  new Conversion(draft, elements, files[0]?.file ?? '').run(forwarded)
}

/** Events at a point of the graph: the transforms that they come from, and their tag. */
interface Flow {
  readonly heads: readonly string[]
  readonly tag: Tag
  readonly hops: number
  /** Matches that have given the events a new tag. */
  readonly passed?: ReadonlySet<Plugged>
}

/** The events that arrive at a sink, by tag. */
interface Arrival {
  readonly heads: string[]
  readonly tag: Tag
}

class Conversion {
  readonly #draft: Draft
  /** The place of gaps that belong to no line. */
  readonly #start: Place
  readonly #context: Context
  readonly #gaps: Gap[]
  /** Filters and matches by label; those outside of labels have the empty name. */
  readonly #reportedFlows = new Set<Plugged>()
  readonly #labels = new Map<string, Plugged[]>()
  readonly #sources: Plugged[] = []
  readonly #arrivals = new Map<Plugged, Arrival[]>()
  readonly #sections = new Map<Element, Plugged>()
  /** The outputs of templates. */
  readonly #planted = new Map<Plugged, Plugged>()
  readonly #isOld: boolean
  readonly #joins: Joins

  constructor(draft: Draft, elements: readonly Element[], file: string) {
    this.#draft = draft
    this.#start = { file, line: 1 }
    this.#gaps = draft.gaps
    this.#context = new Context([], draft.gaps, draft.namespace === undefined)
    this.#isOld = isOld(elements)
    this.#collect(elements, '')
    this.#joins = new Joins(this.#labels, this.#context)
  }

  #collect(elements: readonly Element[], label: string): void {
    const own = this.#labels.get(label) ?? []
    this.#labels.set(label, own)
    for (const element of elements) {
      if (element.name === 'source') this.#sources.push(this.#section(element))
      else if (element.name === 'filter' || element.name === 'match') own.push(this.#section(element))
      else if (element.name === 'label') this.#collect(element.children, element.argument)
      else if (element.name === 'worker') this.#collect(element.children, label)
      else if (element.name !== 'system') {
        this.#context.gap(
          element,
          `<${element.name}>`,
          'the element is unknown',
          'Remove it, or add transforms for it.',
        )
      }
    }
  }

  #section(element: Element): Plugged {
    const known = this.#sections.get(element)
    if (known !== undefined) return known
    const section = { ...sectionOf(element), isOld: this.#isOld }
    this.#sections.set(element, section)
    return section
  }

  run(forwarded: readonly Forwarded[] = []): void {
    const groups = new Map<string, { heads: string[]; tag: Tag; label: string }>()
    for (const section of this.#sources) {
      const flow = this.#source(section)
      if (flow === undefined) continue
      const key = `${flow.label}\n${flow.tag.text}`
      const group = groups.get(key) ?? { heads: [], tag: flow.tag, label: flow.label }
      group.heads.push(...flow.heads)
      groups.set(key, group)
    }
    for (const { heads, tag, label } of groups.values()) this.#follow({ heads, tag, hops: 0 }, label)
    for (const { heads, tag } of forwarded) this.#follow({ heads, tag, hops: 0 }, '')
    for (const [section, arrivals] of this.#arrivals) this.#sink(section, arrivals)
    const isReached = (section: Plugged) => this.#arrivals.has(section) || this.#reportedFlows.has(section)
    const unreached = [...this.#sections.values()].filter((section) => !isReached(section))
    reportUnreached(unreached, this.#labels, errorLabel, this.#context)
    this.#draft.removeUnread()
    complete(this.#draft, this.#sources[0] ?? [...this.#sections.values()][0] ?? this.#start, ends)
  }

  #source(
    section: Plugged,
  ): { readonly heads: readonly string[]; readonly tag: Tag; readonly label: string } | undefined {
    const name = nameOf(section)
    const label = lastValue(section, '@label') ?? ''
    const text = lastValue(section, 'tag') ?? section.type
    const isPods =
      (lastValue(section, 'path') ?? '').includes('/var/log/containers/') ||
      (lastValue(section, 'path') ?? '').includes('/var/log/pods/')
    const isBehindLinks = isPods && !(lastValue(section, 'path') ?? '').includes('/var/log/containers/')
    const tag: Tag = {
      text,
      isOfPods: isPods && !isBehindLinks,
      isOfFile: isBehindLinks || (!isPods && section.type === 'tail'),
      samples: isBehindLinks ? podFileSamples : undefined,
    }
    const replacement = Object.hasOwn(replacedInputs, section.type) ? replacedInputs[section.type] : undefined
    if (replacement !== undefined) {
      this.#gaps.push({
        file: section.file,
        line: section.line,
        subject: `source ${section.type}`,
        reason: 'it exposes Fluentd itself',
        nearest: replacement,
        isReplaced: true,
      })
      return undefined
    }
    if (section.element.component !== undefined) {
      const source = this.#draft.add('sources', name, section.element.component)
      return { heads: this.#append([source], section.element.after ?? [], `${name}-record`, section), tag, label }
    }
    reportVariables(section, inputs, this.#context)
    const plugin = this.#find(section, inputs, refusedInputs)
    if (plugin === undefined) {
      const isTagged = ownTags.has(section.type) && lastValue(section, 'tag') === undefined
      const comments = [
        `GAP: the source \`${section.type}\` (${section.file}:${section.line}) has no counterpart. This source reads nothing.`,
        ...(isTagged
          ? ['Later steps read the tag of an event from `%tag`, so set it behind the source that replaces this one.']
          : []),
      ]
      const head = this.#draft.add('sources', name, {
        type: 'file',
        config: { include: [`/var/empty/${name.replace(/[^\w-]/g, '-')}`] },
        comments,
      })
      return { heads: [head], tag: isTagged ? anyTag : tag, label }
    }
    const { component, steps } = plugin.build(section, this.#context, this.#gaps)
    // The source takes the line feed away.
    const isEnded = isPods && endsLines(section)
    const isPodSource = component.type === 'orchestrator_logs'
    const lines = { tag, between: isEnded ? '' : '\n', parser: isPodSource ? undefined : parserOfLines(section) }
    const { selector, before = [], after = [] } = section.element
    const own = selector === undefined ? component : { ...component, selector }
    const origin = { file: section.file, line: section.line, subject: `source ${section.type}` }
    const heads = this.#joins.of(label, lines).flatMap(({ joined, condition }) => {
      const whole =
        joined === undefined
          ? own
          : isPodSource
            ? { ...own, multiline: joined.pods }
            : { ...own, config: { ...own.config, multiline: joined.file } }
      const source = this.#draft.add('sources', name, soundComponent('source', whole, origin, this.#gaps))
      const tagged: readonly Step[] = condition === undefined ? [] : [{ type: 'filter', text: condition }]
      return this.#append([source], [...before, ...steps, ...tagged, ...after], `${name}-record`, section)
    })
    return { heads, tag, label }
  }

  /** Passes events through the filters of a label, up to the first match. */
  #follow(start: Flow, label: string): void {
    let flow = start
    for (const section of this.#labels.get(label) ?? []) {
      const match = matchOf(flow.tag, section.pattern)
      if (match === 'none') continue
      if (match === 'all') {
        if (section.kind === 'match') {
          this.#toMatch(section, flow, label)
          return
        }
        flow = { ...flow, heads: this.#filtered(section, flow, label) }
        continue
      }
      // The sources have its rules.
      if (section.type === 'concat' && stepsOfParts(section).length === 0) {
        this.#filtered(section, flow, label)
        continue
      }
      // A new tag that reached the same rules again would do so forever.
      if (flow.passed?.has(section)) continue
      const parts = this.#divided(section, flow)
      if (parts === undefined) continue
      if (section.kind === 'match') {
        this.#toMatch(section, { ...flow, heads: parts.taken }, label)
        flow = { ...flow, heads: parts.rest }
      } else
        flow = { ...flow, heads: [...this.#filtered(section, { ...flow, heads: parts.taken }, label), ...parts.rest] }
    }
    // Fluentd discards events without a match, and logs a warning.
  }

  /** Splits events into those whose tags match a pattern and the others; undefined if the tags are unknown. */
  #divided(section: Plugged, { heads, tag }: Flow): { readonly taken: string[]; readonly rest: string[] } | undefined {
    if (!isKnown(tag)) {
      this.#context.gap(
        section,
        `<${section.kind} ${section.pattern}>`,
        `the pattern matches some of the tags \`${tag.text}\`, and events have no tags`,
        'Add a condition on fields to the step, or read these files with a separate source.',
      )
      return undefined
    }
    const test = `is_object(parse_grok(tag, ${pattern(patternOf(section.pattern))}) ?? null)`
    const step = (condition: string): Step => ({ type: 'filter', text: `${tagProgram(tag)}\n${condition}` })
    const name = nameOf(section)
    return {
      taken: this.#append(heads, [step(test)], `${name}-tag`, section),
      rest: this.#append(heads, [step(`!${test}`)], `${name}-other-tags`, section),
    }
  }

  #filtered(section: Plugged, flow: Flow, label: string): string[] {
    const { heads, tag } = flow
    if (section.type === 'concat') {
      this.#joins.report(section)
      this.#reportFlow(section)
      return this.#append(heads, stepsOfParts(section), nameOf(section), section)
    }
    const { after } = section.element
    if (after !== undefined) return this.#append(heads, after, nameOf(section), section)
    reportVariables(section, filters, this.#context)
    const plugin = this.#find(section, filters, refusedFilters)
    const isMarked = this.#hasErrors(section, label)
    const marked = isMarked ? { ...section, marksFailures: true } : section
    const steps: readonly Step[] =
      plugin === undefined
        ? [
            {
              type: 'remap',
              text: '.',
              comments: [
                `GAP: the filter \`${section.type}\` (${section.file}:${section.line}) has no counterpart. Events pass unchanged.`,
              ],
            },
          ]
        : plugin.build(marked, this.#context, this.#gaps, tag)
    if (!isMarked) return this.#append(heads, steps, nameOf(section), section)
    const parsed = this.#append(heads, steps.slice(0, 1), nameOf(section), section)
    this.#toErrors(section, { ...flow, heads: parsed })
    return this.#append(parsed, steps.slice(1), nameOf(section), section)
  }

  /** Whether a filter passes events that it cannot parse to the label for errors. Within this label, they are only logged. */
  #hasErrors(section: Plugged, label: string): boolean {
    const matches = (this.#labels.get(errorLabel) ?? []).filter(({ kind }) => kind === 'match')
    return (
      section.type === 'parser' &&
      label !== errorLabel &&
      matches.some(({ type }) => type !== 'null') &&
      isOn(lastValue(section, 'emit_invalid_record_to_error'), true)
    )
  }

  #toErrors(section: Plugged, flow: Flow): void {
    const under = lastValue(section, 'hash_value_field')
    const isAdded = under !== undefined && isOn(lastValue(section, 'reserve_data'), false)
    const steps: readonly Step[] = [
      { type: 'filter', text: '%is_parsed == false' },
      ...(isAdded ? [{ type: 'remap', text: `del(.${textLiteral(under)})` } as const] : []),
    ]
    const heads = this.#append(flow.heads, steps, `${nameOf(section)}-errors`, section)
    this.#follow({ ...flow, heads, hops: flow.hops + 1 }, errorLabel)
    if (this.#context.hasReported(`label ${errorLabel}`)) return
    const reason =
      'it receives the events that a parser does not read; those that a sink rejects are counted and logged'
    const nearest = 'See the metrics of discarded events, and the log of the agent.'
    this.#context.replaced(section, `label ${errorLabel}`, reason, nearest)
  }

  /** Passes events to a match, which ends their way through the label. */
  #toMatch(section: Plugged, flow: Flow, label: string): void {
    if (flow.hops > maxHops) {
      this.#context.gap(
        section,
        `match ${section.type}`,
        `events would change their tag or label more than ${maxHops} times`,
        'Check whether rules match the tags that they set.',
      )
      return
    }
    const next = { ...flow, hops: flow.hops + 1 }
    this.#reportFlow(section)
    if (section.type === 'copy') {
      const stores = childrenOf(section.element, 'store')
      if (stores.length === 0) this.#context.gap(section, 'copy', 'it has no store', 'Add sinks.')
      for (const store of stores) if (!this.#isFallback(store)) this.#toMatch(this.#section(store), next, label)
    } else if (section.type === roundRobin.name) {
      const { draw, shares } = sharesOf(section, this.#context)
      const heads = this.#append(flow.heads, draw, nameOf(section), section)
      for (const { store, steps } of shares) {
        const own = this.#append(heads, steps, nameOf(section), section)
        this.#toMatch(this.#section(store), { ...next, heads: own }, label)
      }
    } else if (section.type === 'relabel') {
      const wanted = lastValue(section, '@label') ?? ''
      // The official chart defines this label in a separate file, and discards the events.
      if (!this.#labels.has(wanted) && wanted !== '@FLUENT_LOG')
        this.#context.gap(section, `relabel ${wanted}`, 'there is no such label', 'Add the label, or a sink.')
      this.#follow(next, wanted)
    } else if (section.type === 'rewrite_tag_filter') this.#rewrite(section, next, label)
    else if (section.type === labelRouter.name) this.#route(section, next, label)
    else if (section.type === recordReformer.name) {
      const made = reformed(section, this.#context, this.#gaps, flow.tag)
      // A new tag that reached the same match again would do so forever.
      if (made === undefined || flow.passed?.has(section)) return
      const heads = this.#append(flow.heads, made.steps, nameOf(section), section)
      const passed = passedBy(section, flow)
      this.#follow({ ...next, heads, tag: made.tag, passed }, lastValue(section, '@label') ?? label)
    } else if (section.type === 'tag_normaliser') {
      const { tag, steps } = normalised(section)
      const heads = this.#append(flow.heads, steps, nameOf(section), section)
      this.#followAfter(section, { ...next, heads, tag }, label)
    } else if (section.type === 'detect_exceptions') {
      this.#joins.report(section)
      const shorter = this.#prefixed(section, next, 'remove_tag_prefix')
      const own = lastValue(section, '@label')
      if (shorter === undefined && own === undefined) this.#followAfter(section, next, label)
      else this.#follow({ ...(shorter ?? next), passed: passedBy(section, flow) }, own ?? label)
    } else if (section.type === 'route') this.#takeRoutes(section, next, label)
    else if (section.type === 'forest') {
      const tree = this.#planted.get(section) ?? this.#section(treeOf(section.element))
      this.#planted.set(section, tree)
      this.#toMatch(tree, this.#prefixed(section, next, 'remove_prefix', 'add_prefix') ?? next, label)
    } else {
      const arrivals = this.#arrivals.get(section) ?? []
      this.#arrivals.set(section, arrivals)
      const same = arrivals.find(({ tag }) => tag.text === flow.tag.text && tag.isOfPods === flow.tag.isOfPods)
      if (same === undefined) arrivals.push({ heads: [...flow.heads], tag: flow.tag })
      else same.heads.push(...flow.heads.filter((head) => !same.heads.includes(head)))
    }
  }

  /** Whether a store only receives events that the stores before it cannot accept. */
  #isFallback(store: Element): boolean {
    if (!store.argument.includes('ignore_if_prev_success')) return false
    const reason =
      'it receives events only while the stores before it fail; their sinks retry, so lines wait in their files'
    this.#context.replaced(
      store,
      `store ${this.#section(store).type}`,
      reason,
      'To send events to both, remove the condition.',
    )
    return true
  }

  /** Reports the options without a counterpart of a section that only passes events on. Events may reach the section several times. */
  #reportFlow(section: Plugged): void {
    const flow = flows.find(({ name }) => name === section.type)
    if (flow === undefined || this.#reportedFlows.has(section)) return
    this.#reportedFlows.add(section)
    if (flow === recordReformer) return
    const options = { ...common, '@label': 'the next label', ...flow.options }
    const entries = section.entries.filter(({ key }) => !/^rewriterule\d+$/.test(key))
    this.#context.reportOptions(
      { ...section, entries },
      { name: flow.name, options, itself: { ...always, ...flow.itself } },
    )
  }

  /** Events that keep their tag would reach the same match again. */
  #followAfter(section: Plugged, flow: Flow, label: string): void {
    const all = this.#labels.get(label) ?? []
    const rest = all.slice(all.indexOf(section) + 1)
    const name = `${label}\n${section.line}`
    this.#labels.set(name, rest)
    this.#follow(flow, name)
    this.#labels.delete(name)
  }

  /** Events whose tags have lost one prefix and got another one; undefined if the tags stay the same. */
  #prefixed(section: Plugged, flow: Flow, removed: string, added = ''): Flow | undefined {
    const made = prefixed(flow.tag, lastValue(section, removed), lastValue(section, added))
    if (made === undefined) return undefined
    return { ...flow, heads: this.#append(flow.heads, made.steps, nameOf(section), section), tag: made.tag }
  }

  /** Passes events along the first route whose pattern their tags match, and along later ones if that route copies them. */
  #takeRoutes(section: Plugged, flow: Flow, label: string): void {
    const prefixes = ['remove_tag_prefix', 'add_tag_prefix'] as const
    let rest = this.#prefixed(section, flow, ...prefixes) ?? flow
    for (const element of childrenOf(section.element, 'route')) {
      const route = this.#section(element)
      const match = matchOf(rest.tag, route.pattern)
      if (match === 'none') continue
      const parts = match === 'all' ? { taken: rest.heads, rest: [] } : this.#divided(route, rest)
      if (parts === undefined) continue
      const taken = { ...rest, heads: parts.taken, passed: passedBy(section, flow) }
      this.#follow(this.#prefixed(route, taken, ...prefixes) ?? taken, lastValue(route, '@label') ?? label)
      if (isOn(lastValue(route, 'copy'), false)) continue
      rest = { ...rest, heads: parts.rest }
      if (match === 'all') return
    }
  }

  #route(section: Plugged, flow: Flow, label: string): void {
    for (const { at, condition, label: next, tag: text } of routesOf(section, this.#context)) {
      const name = `${nameOf(section)}-route`
      const isAll = condition === 'if true { true } else { false }'
      const steps: readonly Step[] = isAll ? [] : [{ type: 'filter', text: condition }]
      const heads = this.#append(flow.heads, steps, name, this.#section(at))
      const tag = text === undefined ? flow.tag : { text, isOfPods: false }
      if (next === undefined && text === undefined) {
        const reason = 'a route names neither a label nor a tag, so its events would come here again'
        this.#context.gap(at, 'label_router: route', reason, 'Add `@label` to the route.')
      } else if (next !== undefined && !this.#labels.has(next)) {
        this.#context.gap(at, `label_router ${next}`, 'there is no such label', 'Add the label, or a sink.')
      } else this.#follow({ ...flow, heads, tag }, next ?? label)
    }
  }

  #rewrite(section: Plugged, flow: Flow, label: string): void {
    const before: string[] = []
    for (const element of rulesOf(section)) {
      const rule = this.#section(element)
      const path = recordPath(lastValue(rule, 'key') ?? '')
      const regex = lastValue(rule, 'pattern')
      const tag = lastValue(rule, 'tag')
      if (path === undefined || regex === undefined || tag === undefined) {
        this.#context.gap(
          rule,
          'rewrite_tag_filter: rule',
          'a rule must be a field, an expression and a tag',
          'Rewrite the branch as a filter transform, and name it in the inputs of its sinks.',
        )
        continue
      }
      const value = `(to_string(${fieldLiteral(path)}) ?? encode_json(${fieldLiteral(path)}))`
      const found = `is_object(parse_grok(${value}, ${pattern(regex)}) ?? null)`
      // An empty value matches no rule, unless the rule is inverted.
      const test = isOn(lastValue(rule, 'invert'), false) ? `!${found}` : `(${value} != "" && ${found})`
      const condition = [...before.map((earlier) => `!(${earlier})`), test].join(' && ')
      before.push(test)
      const { tag: own, steps } = retagged(section, { tag, value, pattern: regex }, flow.tag)
      const chosen: readonly Step[] = [{ type: 'filter', text: condition }, ...steps]
      const heads = this.#append(flow.heads, chosen, `${nameOf(section)}-rule`, rule)
      const next = lastValue(rule, 'label') ?? lastValue(section, '@label') ?? label
      this.#follow({ ...flow, heads, tag: own, passed: passedBy(section, flow) }, next)
    }
  }

  /** Heads whose events have one tag; if the sink uses different tags, transforms first store them in `%tag`. */
  #tagged(section: Plugged, arrivals: readonly Arrival[]): { readonly heads: string[]; readonly tag: Tag | undefined } {
    const heads = arrivals.flatMap((arrival) => arrival.heads)
    const [first] = arrivals
    const isOne = arrivals.length === 1 && first?.tag.text.includes('*') === false
    const readsTag =
      section.entries.some(({ value }) => /\$\{[^}]*\btag(?:_parts)?\b/.test(value)) ||
      isOn(lastValue(section, 'include_tag_key'), false) ||
      lastValue(section, 'inject.tag_key') !== undefined
    if (isOne || !readsTag || arrivals.some(({ tag }) => !isKnown(tag)))
      return { heads, tag: arrivals.length === 1 && first !== undefined && isKnown(first.tag) ? first.tag : undefined }
    const kept = arrivals.flatMap(({ heads: own, tag }) => {
      const text = [tagProgram(tag), '%tag = tag', '%tag_parts = split(tag, ".")'].join('\n')
      return this.#append(own, [{ type: 'remap', text }], `${nameOf(section)}-with-tag`, section)
    })
    return { heads: kept, tag: { text: '*', isOfPods: false, isKept: true } }
  }

  #sink(section: Plugged, arrivals: readonly Arrival[]): void {
    const name = nameOf(section)
    const plugin = this.#find(section, outputs, refusedOutputs)
    const secondary = secondaryOf(section)
    if (secondary !== undefined) {
      this.#context.replaced(
        section,
        `secondary ${secondary}`,
        'it receives events whose retries have failed; the sink retries forever, so lines wait in their files',
        'Do not set `request.retry_attempts`.',
      )
    }
    if (plugin === undefined) {
      const comments = [
        `GAP: the output \`${section.type}\` (${section.file}:${section.line}) has no counterpart. This sink discards its events.`,
      ]
      const inputs = arrivals.flatMap(({ heads }) => heads)
      this.#draft.add('sinks', name, { type: 'blackhole', inputs, comments })
      return
    }
    const { heads, tag } = this.#tagged(section, arrivals)
    const { component, steps } = plugin.build(section, this.#context, this.#gaps, tag)
    const origin = { file: section.file, line: section.line, subject: `match ${section.type}` }
    const sound = soundComponent('sink', component, origin, this.#gaps)
    this.#draft.add('sinks', name, { ...sound, inputs: this.#append(heads, steps, `${name}-form`, section) })
  }

  #append(heads: readonly string[], steps: readonly Step[], name: string, section: Plugged): string[] {
    const { file, line, kind, type } = section
    return this.#draft.append(heads, steps, name, { file, line, subject: `${kind} ${type}` })
  }

  #find<P extends Described>(section: Plugged, plugins: readonly P[], refusals: readonly Refusal[]): P | undefined {
    const plugin = plugins.find(({ name }) => name === section.type)
    if (plugin !== undefined) {
      const isOpen = (key: string) => openOptions.some((prefix) => key.startsWith(prefix))
      const entries = section.entries.filter(({ key }) => !isOpen(key))
      this.#context.reportOptions({ ...section, entries }, plugin as never)
      reportNames(section, this.#context)
      return plugin
    }
    const refusal = refusals.find(({ name }) => name === section.type)
    this.#context.missing(section, `${section.kind} ${section.type}`, refusal)
    return undefined
  }
}

const ends: Ends = {
  source: {
    subject: 'sources',
    reason: 'the configuration has no source',
    comment: 'the configuration has no source.',
  },
  sink: {
    subject: 'matches',
    reason: 'no match of the configuration receives events',
    comment: 'the configuration has no output.',
  },
}

/** Inputs whose events bring their tags with them. */
const ownTags: ReadonlySet<string> = new Set(['forward', 'secure_forward', 'unix', 'http'])

/** The matches that have given events a new tag, with one more. */
const passedBy = (section: Plugged, { passed }: Flow): ReadonlySet<Plugged> => new Set([...(passed ?? []), section])

function nameOf(section: Plugged): string {
  return (
    lastValue(section, '@id') ??
    lastValue(section, 'id') ??
    `${section.type || 'plugin'}-${section.kind === 'store' ? 'match' : section.kind}`
  )
}
