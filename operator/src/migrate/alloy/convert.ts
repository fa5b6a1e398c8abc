// Converts an Alloy configuration to a Pipeline. Follows `forward_to` from the sources to programs and sinks.

import { completeSink } from '../complete.ts'
import { type Draft, type Included, type NamedText, nameLike } from '../draft.ts'
import { Chain } from '../loki/chain.ts'
import { type Part, Report } from '../loki/context.ts'
import { textExpression } from '../loki/fields.ts'
import { excludedAfter, pathAfter, pathLabel } from '../loki/file-paths.ts'
import { type Joined, variantsOf } from '../loki/joining.ts'
import { diskBuffer, pushOf } from '../loki/push.ts'
import { ruleLines } from '../loki/relabel.ts'
import { addFiles, addLabels, addPods, isPodPath, type Pods, SourceSet } from '../loki/sources.ts'
import { isTargetFile, targetGroups } from '../loki/target-files.ts'
import { flagOf, itemsOf, type Place, pairsOf, type Tree, textOf, textsOf } from '../loki/tree.ts'
import { apiLabels } from './api-labels.ts'
import { Collector, outputsOf, roleOf } from './collector.ts'
import {
  type ComponentMapping,
  components,
  endpoint,
  endpointNames,
  ownLog,
  refusedComponents,
  refusedSources,
  replacedBlocks,
} from './components.ts'
import { Evaluator, referenceOf } from './evaluate.ts'
import { eventLines } from './events.ts'
import { Following, type Joining } from './following.ts'
import { moduleFile, withoutModules } from './modules.ts'
import { idOf, nameOf } from './names.ts'
import { chosenBy, type PodLogs, podLogsIn } from './pod-logs.ts'
import { isAlloy, textsIn } from './read.ts'
import { stageList } from './stage-list.ts'
import { type Block, parseAlloy } from './syntax.ts'
import { componentOf, type Found, type GroupsOf, olderSecs, rulesIn, TargetReader, type Targets } from './targets.ts'

/** A place in the graph, and whether the source has already parsed the lines of the container runtime. */
interface Head {
  readonly name: string
  readonly isPods: boolean
  /** Whether no other `loki.process` has changed the events. Each process has its own extracted values. */
  readonly isFresh: boolean
  /** The component with the stages for this source, and which of its variants they are. */
  readonly variant?: { readonly id: string; readonly index: number }
}

/** Reads the files of one configuration into a draft. */
export function convertAlloy(files: readonly NamedText[], included: Included, draft: Draft): void {
  const readFile = (path: string, from: string) => moduleFile(path, from, files, included)
  const groupsOf = (path: string, from: string) => targetGroups(path, from, files, included)
  const conversion = new Conversion(draft, readFile, groupsOf)
  for (const given of files) conversion.read(given)
  conversion.run(files[0]?.file ?? '')
}

class Conversion {
  readonly #draft: Draft
  readonly #readFile: (path: string, from: string) => string | undefined
  readonly #report: Report
  readonly #sources: SourceSet
  readonly #blocks = new Map<string, Found>()
  readonly #heads = new Map<string, Head[]>()
  readonly #targets: TargetReader
  readonly #collector: Collector
  /** Components whose rules others use, and those that only get the log of Alloy. */
  readonly #used = new Set<string>()
  /** Components whose events reach no other component. */
  readonly #ends: string[] = []
  /** Components between sources and sinks that have been converted; they cannot get further inputs. */
  readonly #done = new Set<string>()
  #asksNode = false
  readonly #podLogs: PodLogs[] = []
  readonly #following: Following
  /** Gaps of stages are reported when the stages are converted, not when the source looks at them. */
  readonly #quiet = new Report([])

  constructor(draft: Draft, readFile: (path: string, from: string) => string | undefined, groupsOf: GroupsOf) {
    this.#readFile = readFile
    this.#draft = draft
    this.#report = new Report(draft.gaps, draft.namespace === undefined)
    this.#sources = new SourceSet(draft)
    const lookup = (id: string) => this.#blocks.get(id)
    this.#targets = new TargetReader(lookup, groupsOf, this.#report)
    this.#collector = new Collector(draft, lookup)
    this.#following = new Following(lookup, (found) => this.#receivers(found), this.#report)
  }

  read(given: NamedText): void {
    const podLogs = podLogsIn(given, this.#report)
    this.#podLogs.push(...podLogs)
    if ((podLogs.length > 0 && !isAlloy(given)) || isTargetFile(given)) return
    for (const { file, text, above, line: ofAll } of textsIn(given, this.#draft.gaps)) {
      const evaluator = new Evaluator(file, above, this.#report, ofAll)
      const { blocks, attributes, problems } = parseAlloy(text)
      for (const { line, message } of problems) {
        this.#report.unreadable(evaluator.place(line), file, `the syntax is not valid: ${message}`)
      }
      for (const { name, line } of attributes) {
        this.#report.gap(evaluator.place(line), name, 'an attribute is outside of all blocks', 'Remove it.')
      }
      const unknown = (block: Block, { name, line }: { readonly name: string; readonly line: number }) =>
        this.#report.gap(
          evaluator.place(line),
          `${idOf(block)}: ${name}`,
          `the module has no argument \`${name}\``,
          'Remove it, or correct its name.',
        )
      const readFile = (path: string) => this.#readFile(path, given.file)
      for (const block of withoutModules(blocks, unknown, readFile)) this.#blocks.set(idOf(block), { block, evaluator })
      this.#asksNode ||= /HOSTNAME|NODE_NAME|constants\.hostname|"(?:NODE|K8S_NODE_NAME)"/.test(text)
    }
  }

  run(file: string): void {
    for (const found of this.#blocks.values()) this.#source(found)
    const waiting = [...this.#blocks.values()].filter(({ block }) => isBetween(block))
    // Convert a component after all components that forward to it.
    while (waiting.length > 0) {
      const index = waiting.findIndex(
        ({ block }) => !waiting.some((other) => this.#receivers(other).includes(idOf(block))),
      )
      const [next] = waiting.splice(Math.max(0, index), 1)
      if (next === undefined) continue
      this.#done.add(idOf(next.block))
      if (roleOf(next.block) === 'step') this.#step(next)
      else this.#through(next)
    }
    for (const found of this.#blocks.values()) this.#sink(found)
    this.#nameSecrets()
    this.#complete(file)
  }

  /** Variables for the keys of Secrets that `remote.kubernetes.secret` reads become references to these keys. */
  #nameSecrets(): void {
    const evaluators = new Set([...this.#blocks.values()].map(({ evaluator }) => evaluator))
    for (const [variable, { path, place }] of [...evaluators].flatMap(({ secrets }) => [...secrets])) {
      const found = this.#blocks.get(path.slice(0, 4).join('.'))
      const read = (name: string) => found && textOf(found.evaluator.attribute(found.block, name))
      const name = read('name')
      if (name !== undefined && path[2] === 'secret') {
        this.#draft.secrets.set(variable, { name, key: path[5] ?? '', namespace: read('namespace'), ...place })
        continue
      }
      const nearest = `Put the value into the key \`${variable}\` of the Secret.`
      this.#report.replaced(place, path.join('.'), 'Alloy looks the value up', nearest)
    }
  }

  /** Ids of the components that a component forwards to. */
  #receivers(found: Found): readonly string[] {
    return receiversIn(found).flatMap((item) => {
      const reference = referenceOf(item)
      return reference === undefined ? [] : [componentOf(reference)]
    })
  }

  #forward(found: Found, heads: readonly Head[]): void {
    let isReceived = false
    for (const item of receiversIn(found)) {
      const reference = referenceOf(item)
      const id = reference === undefined ? undefined : componentOf(reference)
      const to = id === undefined ? undefined : this.#blocks.get(id)
      if (id === undefined || to === undefined) {
        this.#report.gap(
          item,
          reference ?? 'forward_to',
          'no component has this name',
          'Name a component that the files define.',
        )
        continue
      }
      if (this.#done.has(id)) {
        this.#report.gap(item, reference ?? id, 'components forward to each other in a cycle', 'Break the cycle.')
        continue
      }
      this.#heads.set(id, [...(this.#heads.get(id) ?? []), ...heads])
      isReceived = true
    }
    if (isReceived) return
    const { block, evaluator } = found
    const place = evaluator.place(block.line)
    const option = roleOf(block) === undefined ? 'forward_to' : 'output'
    this.#report.gap(place, idOf(block), 'no component receives its events', `Name a receiver in \`${option}\`.`)
    this.#ends.push(...heads.map(({ name }) => name))
  }

  /** Reports the options of a component, and returns its settings. */
  #options(found: Found, mapping: ComponentMapping): Tree {
    const { block, evaluator } = found
    const leaves = block.blocks
      .map(({ name }) => name)
      .filter((name) => mapping.blocks?.some((known) => name === known || name.startsWith(`${known}.`)))
    const tree = evaluator.tree(block, leaves)
    this.#report.options({ ...evaluator.place(block.line), name: idOf(block), tree }, mapping)
    return tree
  }

  #source(found: Found): void {
    const { block, evaluator } = found
    const place = evaluator.place(block.line)
    const role = roleOf(block)
    if (role === 'extension') this.#collector.extension(found)
    if (role === 'source') this.#records(found)
    if (role !== undefined) return
    const mapping = components.find(({ name }) => name === block.name)
    if (mapping !== undefined) {
      const tree = this.#options(found, mapping)
      if (block.name.startsWith('loki.source.')) this.#logs(found, tree)
      return
    }
    const refusal = refusedSources.find(({ name }) => name === block.name)
    if (refusal !== undefined) {
      this.#report.missing(place, idOf(block), refusal, 'component')
      const chain = new Chain(this.#report, false)
      const rulesTree = evaluator.attribute(block, 'relabel_rules')
      const rulesAt = referenceOf(rulesTree)
      if (rulesAt !== undefined) this.#used.add(componentOf(rulesAt))
      const relabel = rulesAt === undefined ? undefined : this.#blocks.get(componentOf(rulesAt))
      addLabels(
        chain,
        pairsOf(evaluator.attribute(block, 'labels')),
        relabel === undefined ? [] : rulesIn(relabel, this.#report),
        this.#report,
        place,
      )
      const source = this.#sources.addMissing(nameOf(block), block.name, place)
      this.#forward(
        found,
        this.#append([{ name: source, isPods: false, isFresh: true }], chain, nameOf(block), place, block.name),
      )
      return
    }
    const how = replacedBlocks[block.name]
    if (how !== undefined) {
      if (block.name === 'logging') this.#ownLog(found)
      if (!['logging', 'livedebugging', 'local.file'].includes(block.name))
        this.#report.replaced(
          place,
          block.name,
          'Penstock does this in another way',
          `${how[0]?.toUpperCase()}${how.slice(1)}.`,
        )
      return
    }
    const known = refusedComponents.find(({ name }) =>
      name.endsWith('.') ? block.name.startsWith(name) : block.name === name,
    )
    this.#report.missing(place, idOf(block), known, 'component')
  }

  /** The log of Alloy itself, which `logging` may pass on. */
  #ownLog({ block, evaluator }: Found): void {
    const receivers = itemsOf(evaluator.attribute(block, 'write_to'))
    const ids = receivers.flatMap((item) => componentOf(referenceOf(item) ?? '') || [])
    for (const id of ids) this.#used.add(id)
    if (receivers.length > 0) this.#report.missing(evaluator.place(block.line), 'logging: write_to', ownLog, 'option')
  }

  /** A receiver of the collector. */
  #records(found: Found): void {
    if (outputsOf(found).logs.length === 0) this.#collector.unreached(found, true)
    else this.#forward(found, this.#collector.source(found).map(recordHead))
  }

  /** A processor of the collector, or a bridge to or from it. */
  #step(found: Found): void {
    const heads = (this.#heads.get(idOf(found.block)) ?? []).map(({ name }) => name)
    if (heads.length === 0) this.#unreached(found)
    else this.#forward(found, this.#collector.step(found, [...new Set(heads)]).map(recordHead))
  }

  #unreached(found: Found): void {
    const id = idOf(found.block)
    const isOfOthers = [...this.#blocks.values()].some((other) => outputsOf(other).others.includes(id))
    this.#collector.unreached(found, isOfOthers || outputsOf(found).others.length > 0)
  }

  #logs(found: Found, tree: Tree): void {
    const { block, evaluator } = found
    const place = evaluator.place(block.line)
    if (block.name === 'loki.source.kubernetes_events') {
      this.#events(found, tree)
      return
    }
    const joining = this.#following.joiningFor(found)
    if (block.name === 'loki.source.podlogs') {
      this.#forward(found, this.#pods(found, this.#podLogsTargets(found, tree), joining, true))
      return
    }
    const targets = this.#targets.read(pick(tree, 'targets'))
    if (targets.length === 0)
      this.#report.gap(place, idOf(block), 'it has no targets', 'Add targets, or remove the component.')
    this.#forward(found, this.#pods(found, targets, joining, block.name === 'loki.source.kubernetes'))
  }

  /** The pods of the PodLogs that a component selects. If the files contain no PodLogs: all pods, with a gap. */
  #podLogsTargets({ block, evaluator }: Found, tree: Tree): readonly Targets[] {
    const place = evaluator.place(block.line)
    const chosen = chosenBy(tree, this.#podLogs, this.#report, idOf(block))
    const pods = { kind: 'pods', selectors: {}, namespaces: [] } as const
    if (chosen.length > 0)
      return chosen.map(({ file, line, rules, ...own }) => ({ ...pods, file, line, rules, podLogs: own }))
    const reason =
      this.#podLogs.length === 0
        ? 'the PodLogs that select its pods are not among the files, so the source reads all pods'
        : 'it selects none of the PodLogs in the files, so the source reads all pods'
    const nearest = 'Convert it together with the output of `kubectl get podlogs -A -o yaml`.'
    this.#report.gap(place, idOf(block), reason, nearest)
    return [{ ...pods, ...place, rules: [] }]
  }

  #pods(found: Found, targets: readonly Targets[], joining: Joining | undefined, isApi: boolean): readonly Head[] {
    if (joining === undefined) return this.#podsJoined(found, targets, undefined, isApi)
    const { id, joined } = joining
    return joined.flatMap((each, index) =>
      this.#podsJoined(found, targets, each, isApi).map((head) => ({ ...head, variant: { id, index } })),
    )
  }

  #podsJoined(found: Found, targets: readonly Targets[], joined: Joined | undefined, isApi: boolean): readonly Head[] {
    const { block, evaluator } = found
    const place = evaluator.place(block.line)
    const name = nameOf(block)
    const runtime = this.#following.runtimeFor(found)
    return targets.flatMap((each) => {
      const { path, unknown } = pathAfter(each.kind === 'files' ? each.labels : [], each.rules)
      const excluded = each.kind === 'files' ? excludedAfter(each.labels, each.rules, this.#report) : []
      const isAllPods =
        each.kind === 'files' &&
        path !== undefined &&
        excluded.length === 0 &&
        isPodPath(path) &&
        /\/pods\/[*/]+(?:\.log)?$/.test(path) &&
        runtime === undefined
      const isPods = each.kind === 'pods' || isAllPods
      // Lines from the API server lack the prefix of the container runtime, so stages that parse it find nothing.
      const chain = new Chain(this.#report, isPods && !isApi)
      const limits = { olderSecs: each.olderSecs ?? olderSecs(evaluator.tree(block), 'file_match') }
      const isOfNodes = each.kind === 'files' && each.isOfNodes === true
      const shared = { rules: each.rules, joined, limits, asksNode: this.#asksNode || isOfNodes }
      const head = ((): string => {
        if (each.kind === 'missing') {
          addLabels(chain, [], each.rules, this.#report, place)
          return this.#sources.addMissing(name, each.subject, each)
        }
        if (isPods) {
          const own = each.kind === 'pods' ? each : { selectors: {}, namespaces: [], labels: [] }
          const labels = each.kind === 'files' ? each.labels.filter(([label]) => !label.startsWith('__')) : []
          const podLogs = each.kind === 'pods' ? each.podLogs : undefined
          const pods: Pods = {
            ...shared,
            selectors: own.selectors,
            namespaces: own.namespaces,
            selector: podLogs?.selector,
            labels: [...labels, ...(podLogs?.facts ?? [])],
            file: isApi ? undefined : '.file',
            runtime: isApi ? undefined : runtime,
            needsPath: each.kind === 'pods' && !isApi,
            readsFromEnd: flagOf(evaluator.attribute(block, 'tail_from_end')) === true,
            ...(isApi ? { defaults: apiLabels(idOf(block), podLogs) } : {}),
          }
          const wanted = podLogs === undefined ? name : podLogs.name
          return addPods(this.#sources, chain, pods, this.#draft, this.#report, wanted, place)
        }
        const files = {
          ...shared,
          paths: [path ?? `/var/empty/${name}`],
          excluded,
          labels: each.labels,
          charset: textOf(evaluator.attribute(block, 'encoding')),
          readsFromEnd: flagOf(evaluator.attribute(block, 'tail_from_end')) === true,
        }
        if (path === undefined) {
          const isComputed = unknown !== undefined
          const reason = isComputed
            ? 'the path depends on a value that only the agent knows'
            : 'a target has no `__path__`'
          const subject = isComputed ? `rule on ${pathLabel}` : idOf(block)
          this.#report.gap(unknown ?? each, subject, reason, 'Set `include` of the source.')
        }
        return addFiles(this.#sources, chain, files, this.#report, name, place)
      })()
      return this.#append([{ name: head, isPods: isPods && !isApi, isFresh: true }], chain, name, place, block.name)
    })
  }

  #events(found: Found, tree: Tree): void {
    const { block, evaluator } = found
    const place = evaluator.place(block.line)
    const given = textsOf(pick(tree, 'namespaces')).filter((name) => name !== '')
    const isName = (name: string) => /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?$/.test(name)
    // A name with a variable is not valid. Its text replaces it, so that the source does not read other namespaces.
    const namespaces = given.map((name) => (isName(name) ? name : nameLike(name)))
    const source = this.#sources.add(nameOf(block), {
      type: 'orchestrator_events',
      config: { include_object: true, ...(namespaces.length > 0 ? { namespaces } : {}) },
    })
    if (this.#draft.namespace !== undefined) {
      const reason = 'a Pipeline of a namespace reads events only if a TenantPolicy allows this'
      this.#report.replaced(
        place,
        idOf(block),
        reason,
        'Allow the source `orchestrator_events`, or convert without `-n`.',
      )
    }
    const chain = new Chain(this.#report, false)
    const job = textOf(pick(tree, 'job_name')) ?? 'loki.source.kubernetes_events'
    this.#report.variables(place, `${idOf(block)}: job_name`, job)
    for (const name of given) {
      this.#report.literal(place, `${idOf(block)}: namespaces`, name)
      if (!isName(name) && !name.includes('$'))
        this.#report.gap(
          place,
          `${idOf(block)}: namespaces`,
          `\`${name}\` is not the name of a namespace`,
          'Correct it.',
        )
    }
    const lines = eventLines(
      textExpression(job, this.#report.readsEnvironment),
      idOf(block),
      textOf(pick(tree, 'log_format')) === 'json',
    )
    chain.add('events', place, lines)
    this.#forward(
      found,
      this.#append([{ name: source, isPods: false, isFresh: true }], chain, nameOf(block), place, block.name),
    )
  }

  #append(heads: readonly Head[], chain: Chain, name: string, place: Place, subject: string): readonly Head[] {
    const [{ isPods, isFresh } = { isPods: false, isFresh: false }] = heads
    const names = this.#draft.append(
      heads.map((head) => head.name),
      chain.steps(),
      name,
      { ...place, subject },
    )
    return names.map((each) => ({ name: each, isPods, isFresh }))
  }

  /** A component between sources and sinks. */
  #through(found: Found): void {
    const { block, evaluator } = found
    const place = evaluator.place(block.line)
    const all = this.#heads.get(idOf(block)) ?? []
    if (passing.includes(block.name) && all.length > 0) {
      this.#forward(found, all)
      return
    }
    if (all.length === 0) {
      if (this.#used.has(idOf(block))) return
      this.#report.gap(place, idOf(block), 'no component forwards to it', 'The component is left out.')
      return
    }
    const stages = stageList(block, evaluator, this.#report)
    const variants = block.name === 'loki.process' ? variantsOf(stages, this.#quiet) : []
    const groups = Map.groupBy(
      all,
      ({ isPods, isFresh, variant }) => `${isPods} ${isFresh} ${variant?.id} ${variant?.index}`,
    )
    for (const heads of groups.values()) {
      const [first] = heads
      const chain = new Chain(this.#report, first?.isPods === true)
      if (block.name === 'loki.process') {
        if (first?.isFresh !== true) chain.add('begin', place, ['.extracted = .labels'])
        const own = first?.variant?.id === idOf(block) ? variants[first.variant.index] : undefined
        chain.addStages(own?.list ?? stages, own !== undefined || this.#following.isUnjoined(idOf(block)))
      } else {
        const rules = rulesIn(found, this.#report).flatMap((rule) => ruleLines(rule, this.#report) ?? [])
        const rest = '.labels = filter(labels) -> |_name, value| { is_string(value) && value != "" }'
        chain.add(idOf(block), place, ['labels = object!(.labels)', ...rules, rest, 'if is_empty(.labels) { abort }'])
      }
      const made = this.#append(heads, chain, nameOf(block), place, block.name)
      this.#forward(
        found,
        made.map((head) => ({ ...head, isFresh: false, ...(first?.variant && { variant: first.variant }) })),
      )
    }
  }

  #sink(found: Found): void {
    const { block, evaluator } = found
    const isWrite = block.name === 'loki.write'
    const isKnown = isWrite || block.name === 'loki.echo'
    const heads = (this.#heads.get(idOf(block)) ?? []).map(({ name }) => name)
    const place = evaluator.place(block.line)
    const role = roleOf(block)
    if (role !== undefined) {
      if (role === 'sink' && heads.length > 0) this.#collector.sink(found, [...new Set(heads)])
      else if (role === 'sink') this.#unreached(found)
      return
    }
    if (!isKnown) {
      // A sink that discards events replaces a component without a counterpart.
      if (heads.length === 0 || between.includes(block.name)) return
      const comments = [
        `GAP: \`${idOf(block)}\` (${place.file}:${place.line}) has no counterpart. This sink discards its events.`,
      ]
      this.#draft.add('sinks', nameOf(block), { type: 'blackhole', inputs: heads, comments })
      return
    }
    if (heads.length === 0) {
      if (this.#used.has(idOf(block))) return
      this.#report.gap(place, idOf(block), 'no component forwards to it', 'The component is left out.')
      return
    }
    if (!isWrite) {
      this.#draft.add('sinks', nameOf(block), {
        type: 'console',
        inputs: heads,
        config: { encoding: { codec: 'json' } },
      })
      return
    }
    const external = pairsOf(evaluator.attribute(block, 'external_labels'))
    const buffer = diskBuffer(pick(evaluator.tree(block), 'wal'), `${idOf(block)}: wal`, this.#report)
    const endpoints = block.blocks.filter(({ name }) => name === 'endpoint')
    if (endpoints.length === 0) {
      this.#report.gap(place, idOf(block), 'it has no endpoint', 'Add a sink to the Pipeline.')
      this.#ends.push(...heads)
    }
    for (const inner of endpoints) {
      const tree = evaluator.tree(inner)
      const at = evaluator.place(inner.line)
      const part: Part = { ...at, name: 'endpoint', tree }
      this.#report.options(part, endpoint)
      const { component, lines } = pushOf(part, endpointNames, this.#report, external)
      const chain = new Chain(this.#report, false)
      chain.add(idOf(block), at, lines)
      const name = textOf(pick(tree, 'name')) ?? nameOf(block)
      const inputs = this.#append(
        heads.map((each) => ({ name: each, isPods: false, isFresh: false })),
        chain,
        `${name}-form`,
        at,
        block.name,
      )
      const config = { ...component.config, ...buffer }
      this.#draft.add('sinks', name, { ...component, config, inputs: inputs.map((each) => each.name) })
    }
  }

  /** A Pipeline needs a source and a sink. */
  #complete(file: string): void {
    const place: Place = { file, line: 1 }
    if (this.#draft.count('sources') === 0) {
      this.#report.gap(place, 'loki.source', 'the configuration has no log source', 'Replace the source `nothing`.')
      this.#sources.addMissing('nothing', 'loki.source', place)
    }
    if (this.#ends.length > 0) {
      this.#draft.add('sinks', 'ends', {
        type: 'blackhole',
        inputs: [...new Set(this.#ends)],
        comments: ['GAP: no component receives these events. This sink discards them.'],
      })
    }
    completeSink(this.#draft, place, {
      subject: 'loki.write',
      reason: 'no log sink of the configuration receives events',
      comment: 'the configuration has no log sink.',
    })
  }
}

/** An event of the collector has no extracted values, and a bridge sets new ones. */
const recordHead = (name: string): Head => ({ name, isPods: false, isFresh: true })

/** Components without a counterpart that only add to events. The events continue without them. */
const passing = ['loki.enrich']
const between = ['loki.process', 'loki.relabel', ...passing]
const isBetween = (block: Block) => between.includes(block.name) || roleOf(block) === 'step'

/** References to the components that a component forwards events or logs to. */
const receiversIn = (found: Found): readonly Tree[] => [
  ...itemsOf(found.evaluator.attribute(found.block, 'forward_to')),
  ...outputsOf(found).logs,
]

function pick(tree: Tree, name: string): Tree | undefined {
  return tree.value instanceof Map ? tree.value.get(name) : undefined
}
