// Converts a Promtail configuration to a Pipeline. A job becomes a source, a program with its relabelling rules, and a program with its
// stages; a client becomes a sink.

import { completeSink } from '../complete.ts'
import type { Draft, Included, NamedText, Origin } from '../draft.ts'
import { podLogPath } from '../fluent-bit/tags.ts'
import { Chain } from '../loki/chain.ts'
import { type Part, Report } from '../loki/context.ts'
import { asksForNode } from '../loki/fields.ts'
import { excludedAfter, excludeLabel, pathAfter, pathLabel } from '../loki/file-paths.ts'
import { type Joined, parsesRuntime, type Variant, variantsOf } from '../loki/joining.ts'
import { nodeLabels, nodeRules } from '../loki/nodes.ts'
import { givenSelectors, withAttached } from '../loki/pods.ts'
import { diskBuffer, type PushNames, pushItself, pushOf, pushOptions } from '../loki/push.ts'
import { decompression } from '../loki/refusals.ts'
import { type Rule, ruleOf } from '../loki/relabel.ts'
import { type RuntimeForm, runtimeForm } from '../loki/runtime.ts'
import { addFiles, addLabels, addPods, isPodPath, type SourceLimits, SourceSet } from '../loki/sources.ts'
import { isTargetFile, targetGroups } from '../loki/target-files.ts'
import { below, bytesOf, flagOf, itemsOf, type Place, pairsOf, type Tree, textOf, textsOf } from '../loki/tree.ts'
import { type Exception, none } from '../page.ts'
import { type Arguments, argumentsIn, expanded, isForExpansion } from './arguments.ts'
import { refusedInputs, unreadTargets } from './jobs.ts'
import { rootsOf } from './read.ts'

const clientNames: PushNames = {
  wait: 'batchwait',
  size: 'batchsize',
  timeout: 'timeout',
  backoff: ['backoff_config'],
  minWait: 'min_period',
  maxWait: 'max_period',
  retries: 'max_retries',
}
export const clientOptions = {
  ...pushOptions(clientNames),
  backoff_config:
    '`request.retry_initial_backoff_secs`, `request.retry_max_duration_secs`, `request.retry_attempts`; without it, the sink retries forever, whereas Promtail gives up after ten attempts',
}

const listening = 'the agent has its own API'
/** Parts of the file other than jobs and clients. */
export const sections: { options: Record<string, string>; itself: Record<string, string | Exception> } = {
  options: {
    clients: 'sinks',
    client: 'a sink',
    scrape_configs: 'sources and transforms',
    limits_config: 'limits of the sources',
    wal: '`buffer` of the sinks, on disk',
  },
  itself: {
    server: listening,
    positions: 'the source keeps its own checkpoints',
    target_config: 'the source finds new files when they appear',
    global: 'the source finds new files when they appear',
    options: 'Loki limits the labels of streams',
    tracing: 'the agent sends no traces',
    runtime_config: 'the operator delivers changes to agents',
    name: 'the name of the Pipeline',
  },
}

const jobOptions = {
  job_name: 'the names of the components',
  pipeline_stages: 'remap programs',
  relabel_configs: 'a remap program',
  static_configs: '`file`',
  file_sd_configs: '`file`',
  kubernetes_sd_configs: '`orchestrator_logs`',
  encoding: '`encoding` of the source',
  entry_parser: 'the stage of the runtime that old versions of Promtail begin with',
} as const

/** Reads the files of one configuration into a draft. */
export function convertPromtail(files: readonly NamedText[], included: Included, draft: Draft): void {
  const groupsOf = (path: string, from: string) => targetGroups(path, from, files, included)
  const conversion = new Conversion(draft, argumentsIn(files), groupsOf)
  for (const given of files) {
    const before = draft.gaps.length
    const roots = rootsOf(given, draft.gaps)
    if (roots.length === 0 && draft.gaps.length === before && !isTargetFile(given)) {
      draft.gaps.push({
        file: given.file,
        line: 1,
        subject: given.file,
        reason: 'the file has no `scrape_configs` and no `clients`',
        nearest: 'Pass the file that has them, or set `--from` to the agent that the file configures.',
      })
    }
    for (const root of roots) conversion.run(root)
  }
  conversion.complete(files[0]?.file ?? '')
}

class Conversion {
  readonly #draft: Draft
  readonly #report: Report
  readonly #sources: SourceSet
  readonly #heads: string[] = []
  readonly #arguments: Arguments
  readonly #groupsOf: GroupsOf
  #asksNode = false

  constructor(draft: Draft, given: Arguments, groupsOf: GroupsOf) {
    this.#arguments = given
    this.#groupsOf = groupsOf
    this.#draft = draft
    this.#report = new Report(draft.gaps, draft.namespace === undefined)
    this.#sources = new SourceSet(draft)
  }

  run(given: Tree): void {
    const root = this.#expanded(given)
    this.#report.options({ ...root, name: 'promtail', tree: root }, sections)
    const { external, client: ofArguments } = this.#arguments
    this.#asksNode = asksForNode(root) || external.some(([, , tree]) => asksForNode(tree))
    const buffer = diskBuffer(below(root, 'wal'), 'wal', this.#report)
    const limits = this.#limits(below(root, 'limits_config'))
    const heads: string[] = []
    for (const job of itemsOf(below(root, 'scrape_configs'))) heads.push(...this.#job(job, limits))
    const clients = [below(root, 'client'), ...itemsOf(below(root, 'clients')), ofArguments]
    for (const client of clients) if (client !== undefined) this.#client(client, heads, buffer)
    this.#heads.push(...heads)
  }

  /** The configuration after Promtail has replaced its variables. */
  #expanded(given: Tree): Tree {
    if (!this.#arguments.expands && !isForExpansion(given)) return given
    const { tree, changed } = expanded(given)
    if (changed !== undefined) {
      const reason = 'where Promtail replaces variables, it also makes one backslash or dollar sign of two'
      this.#report.replaced(changed, '-config.expand-env', reason, 'Compare a few events with `penstock run`.')
    }
    return tree
  }

  #limits(tree: Tree | undefined): SourceLimits {
    if (tree === undefined) return {}
    const itself = {
      max_streams: {
        how: 'Loki limits the labels of streams',
        unless: /^[1-9]/,
        reason: 'the sink does not count streams',
        nearest: 'Loki limits them with `max_streams_per_user`.',
      },
    }
    const rates = ['readline_rate_enabled', 'readline_rate', 'readline_burst', 'readline_rate_drop']
    const part = { ...tree, name: 'limits_config', tree }
    this.#report.options(part, {
      options: {
        max_line_size: '',
        max_line_size_truncate: '',
        ...Object.fromEntries(rates.map((name) => [name, ''])),
      },
      itself,
    })
    if (flagOf(below(tree, 'readline_rate_enabled')) === true) {
      const reason = 'no limit applies to all files of an agent together'
      const nearest = 'Set `limits.perContainer.linesPerSecond` of the Pipeline.'
      const place = below(tree, 'readline_rate_enabled') ?? tree
      this.#report.missing(place, 'limits_config: readline_rate', none('readline_rate', reason, nearest), 'option')
    }
    const bytes = bytesOf(textOf(below(tree, 'max_line_size')))
    return {
      ...(bytes === undefined || bytes === 0 ? {} : { bytes }),
      truncates: flagOf(below(tree, 'max_line_size_truncate')) === true,
    }
  }

  #job(job: Tree, limits: SourceLimits): string[] {
    const name = textOf(below(job, 'job_name')) ?? 'job'
    const part: Part = { file: job.file, line: job.line, name: `job ${name}`, tree: job }
    const refused = Object.fromEntries(refusedInputs.map((refusal) => [refusal.name, '']))
    this.#report.options(part, { options: { ...jobOptions, ...refused }, itself: { decompression } })
    const list = withParser(below(job, 'pipeline_stages'), below(job, 'entry_parser'))
    const rules = itemsOf(below(job, 'relabel_configs')).map((tree) => {
      return ruleOf({ file: tree.file, line: tree.line, name: 'relabel_configs', tree }, this.#report)
    })
    const variants = variantsOf(list, this.#report)
    const charset = textOf(below(job, 'encoding'))
    const runtime = parsesRuntime(list) ? undefined : runtimeForm([list])
    const parts = { name, rules, limits, runtime, charset }
    const heads: JobHead[] = []
    const begin = (isPods: boolean, add: (chain: Chain, joined: Joined | undefined) => string) => {
      for (const variant of variants) {
        const chain = new Chain(this.#report, isPods)
        heads.push({ isPods, chain, variant, source: add(chain, variant.joined) })
      }
    }
    for (const tree of itemsOf(below(job, 'kubernetes_sd_configs'))) {
      if (textOf(below(tree, 'role')) === 'node' && pathAfter([], rules).path !== undefined) {
        const own = { ...parts, rules: nodeRules(rules, this.#report) }
        begin(false, (chain, joined) => this.#files(nodeLabels(tree), tree, chain, { ...own, joined }))
      } else begin(true, (chain, joined) => this.#discovered(tree, chain, { ...parts, joined }))
    }
    for (const group of [...itemsOf(below(job, 'static_configs')), ...this.#ofFiles(job)]) {
      const labels = pairsOf(below(group, 'labels'))
      const { path } = pathAfter(labels, rules)
      const excluded = pathAfter(labels, rules, excludeLabel)
      const hasExclusion = (excluded.path ?? excluded.unknown) !== undefined
      const isAllPods =
        path !== undefined && !hasExclusion && isPodPath(path) && /\/(?:pods|containers)\/[*/]+(?:\.log)?$/.test(path)
      const isPods = isAllPods && runtime === undefined
      begin(isPods, (chain, joined) =>
        isPods
          ? this.#allPods(path, labels, group, chain, { ...parts, joined })
          : this.#files(labels, group, chain, { ...parts, joined }),
      )
    }
    for (const refusal of refusedInputs) {
      const tree = below(job, refusal.name)
      if (tree === undefined) continue
      this.#report.missing(tree, refusal.name, refusal, 'target')
      begin(false, (chain) => {
        const own = pairsOf(below(tree, 'labels'))
        addLabels(chain, own, rules, this.#report, tree)
        return this.#sources.addMissing(`${name}-${refusal.name}`, refusal.name, tree)
      })
    }
    if (heads.length === 0) {
      this.#report.gap(job, `job ${name}`, 'the job has no targets', 'The job is left out.')
      return []
    }
    return this.#joined(heads, list, name, part)
  }

  /** Sources with the same stages share the programs after their labels. */
  #joined(heads: readonly JobHead[], list: Tree | undefined, name: string, part: Part): string[] {
    const origin = { file: part.file, line: part.line, subject: part.name }
    if (!heads.some(({ isPods }) => isPods) && itemsOf(list).some((item) => below(item, 'cri') !== undefined)) {
      this.#report.replaced(
        part,
        'stage cri',
        'parts of a line that the runtime has split become separate events',
        'Read pods with `orchestrator_logs`, which joins them.',
      )
    }
    return [...Map.groupBy(heads, ({ isPods, variant }) => variant.list ?? isPods).values()].flatMap((same) =>
      this.#sharing(same, name, origin),
    )
  }

  #sharing(heads: readonly JobHead[], name: string, origin: Origin): string[] {
    return [true, false].flatMap((isPods) => {
      const group = heads.filter((head) => head.isPods === isPods)
      const [only] = group
      if (only === undefined) return []
      const { list } = only.variant
      if (group.length === 1) {
        only.chain.addStages(list)
        return this.#draft.append([only.source], only.chain.steps(), name, origin)
      }
      const labelled = group.flatMap(({ source, chain }) =>
        this.#draft.append([source], chain.steps(), `${name}-labels`, origin),
      )
      const shared = new Chain(this.#report, isPods)
      shared.addStages(list)
      return this.#draft.append(labelled, shared.steps(), name, origin)
    })
  }

  #discovered(tree: Tree, chain: Chain, job: JobParts): string {
    const role = textOf(below(tree, 'role')) ?? 'pod'
    const part: Part = { file: tree.file, line: tree.line, name: 'kubernetes_sd_configs', tree }
    this.#report.options(part, {
      options: { role: '`pod`', namespaces: 'selectors', selectors: 'selectors' },
      itself: {
        attach_metadata: 'the source adds labels of nodes and namespaces',
        kubeconfig_file: 'the agent uses its service account',
        api_server: 'the agent uses its service account',
        bearer_token_file: 'the agent uses its service account',
        tls_config: 'the agent uses its service account',
      },
    })
    if (role !== 'pod') {
      this.#report.gap(
        tree,
        `kubernetes_sd_configs: role ${role}`,
        'Penstock reads logs of pods only',
        'Use the role `pod`.',
      )
      addLabels(chain, [], job.rules, this.#report, tree)
      return this.#sources.addMissing(`${job.name}-${role}`, `kubernetes_sd_configs: role ${role}`, tree)
    }
    const own = below(tree, 'namespaces', 'own_namespace')
    if (flagOf(own) === true) {
      const reason = 'the namespace of Promtail is unknown'
      this.#report.gap(own ?? tree, 'namespaces: own_namespace', reason, 'Set the namespace of the Pipeline with `-n`.')
    }
    const selectors = givenSelectors(itemsOf(below(tree, 'selectors')), this.#report)
    const namespaces = textsOf(below(tree, 'namespaces', 'names'))
    return addPods(
      this.#sources,
      chain,
      {
        rules: withAttached(job.rules, below(tree, 'attach_metadata'), this.#report),
        selectors,
        namespaces,
        joined: job.joined,
        limits: job.limits,
        labels: [],
        file: '.file',
        asksNode: this.#asksNode,
        runtime: job.runtime,
        needsPath: true,
      },
      this.#draft,
      this.#report,
      job.name,
      tree,
    )
  }

  /** The groups of the files of targets. */
  #ofFiles(job: Tree): readonly Tree[] {
    return itemsOf(below(job, 'file_sd_configs')).flatMap((tree) => {
      const part = { file: tree.file, line: tree.line, name: 'file_sd_configs', tree }
      const itself = { refresh_interval: 'the operator delivers changes to agents' }
      this.#report.options(part, { options: { files: '' }, itself })
      return textsOf(below(tree, 'files')).flatMap((path) => {
        const groups = this.#groupsOf(path, tree.file)
        if (groups === undefined) this.#report.missing(tree, `file_sd_configs: ${path}`, unreadTargets, 'target')
        return groups ?? []
      })
    })
  }

  #allPods(path: string, labels: Labels, group: Tree, chain: Chain, job: JobParts): string {
    return addPods(
      this.#sources,
      chain,
      {
        rules: job.rules,
        selectors: {},
        namespaces: [],
        joined: job.joined,
        limits: job.limits,
        labels: labels.filter(([name]) => !name.startsWith('__')),
        file: path.startsWith('/var/log/containers/') ? podLogPath('.') : '.file',
        asksNode: this.#asksNode,
      },
      this.#draft,
      this.#report,
      job.name,
      group,
    )
  }

  #files(labels: Labels, place: Tree, chain: Chain, job: JobParts): string {
    const { path, unknown } = pathAfter(labels, job.rules)
    if (unknown !== undefined) {
      const reason = 'the path depends on a value that only the agent knows'
      this.#report.gap(unknown, `relabel rule on ${pathLabel}`, reason, 'Set `include` of the source.')
    } else if (path === undefined) {
      this.#report.gap(place, 'static_configs', 'the group has no label `__path__`', 'Set `include` of the source.')
    }
    return addFiles(
      this.#sources,
      chain,
      {
        paths: [path ?? `/var/empty/${job.name.toLowerCase().replace(/[^a-z0-9-]+/g, '-')}`],
        excluded: excludedAfter(labels, job.rules, this.#report),
        labels,
        rules: job.rules,
        joined: job.joined,
        limits: job.limits,
        charset: job.charset,
        asksNode: this.#asksNode || labels.some(([, , tree]) => asksForNode(tree)),
      },
      this.#report,
      job.name,
      place,
    )
  }

  #client(client: Tree, heads: readonly string[], buffer: Buffering): void {
    const name = textOf(below(client, 'name')) ?? 'loki'
    const part: Part = { file: client.file, line: client.line, name: 'client', tree: client }
    this.#report.options(part, { options: clientOptions, itself: pushItself })
    const own = pairsOf(below(client, 'external_labels'))
    const others = this.#arguments.external.filter(([label]) => !own.some(([name]) => name === label))
    const { component, lines } = pushOf(part, clientNames, this.#report, [...own, ...others])
    if (heads.length === 0) {
      this.#report.gap(client, 'client', 'no job sends events to it', 'The client is left out.')
      return
    }
    const chain = new Chain(this.#report, false)
    chain.add(name === 'loki' ? 'client' : `client ${name}`, client, lines)
    const inputs = this.#draft.append(heads, chain.steps(), `${name}-form`, {
      file: client.file,
      line: client.line,
      subject: 'client',
    })
    this.#draft.add('sinks', name, { ...component, config: { ...component.config, ...buffer }, inputs })
  }

  /** A Pipeline needs a source and a sink. */
  complete(file: string): void {
    const place: Place = { file, line: 1 }
    if (this.#draft.count('sources') === 0) {
      this.#report.gap(place, 'scrape_configs', 'the configuration has no job', 'Replace the source `nothing`.')
      this.#sources.addMissing('nothing', 'scrape_configs', place)
    }
    completeSink(
      this.#draft,
      place,
      {
        subject: 'clients',
        reason: 'no client of the configuration receives events',
        comment: 'the configuration has no client.',
      },
      this.#heads.length > 0 ? this.#heads : undefined,
    )
  }
}

/** The stages, with the one of `entry_parser` in front. */
function withParser(list: Tree | undefined, parser: Tree | undefined): Tree | undefined {
  const name = textOf(parser)
  if (parser === undefined || (name !== 'docker' && name !== 'cri')) return list
  const { file, line } = parser
  const stage: Tree = { file, line, value: new Map([[name, { file, line, value: new Map() }]]) }
  return { file, line, value: [stage, ...itemsOf(list)] }
}

type Labels = readonly (readonly [string, string, Tree])[]
type GroupsOf = (path: string, from: string) => readonly Tree[] | undefined
/** The option `buffer` of sinks, if the old agent kept events on disk. */
type Buffering = Readonly<Record<string, unknown>>

/** A source of a job with its first program. */
interface JobHead {
  readonly source: string
  readonly isPods: boolean
  readonly chain: Chain
  readonly variant: Variant
}

interface JobParts {
  readonly name: string
  readonly rules: readonly Rule[]
  readonly joined: Joined | undefined
  readonly limits: SourceLimits
  /** The form in which stages expect lines of the container runtime, if none of them parses these as such. */
  readonly runtime: RuntimeForm | undefined
  readonly charset: string | undefined
}
