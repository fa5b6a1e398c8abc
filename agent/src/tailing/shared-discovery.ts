// One discovery for many tailers: it watches and lists each folder once, and forwards the reports to the tailers that
// entered the folder. It does not watch folders that no tailer entered.

import { Discovery, type DiscoveryHooks, type DiscoveryRules, type Finder, type FoundFile } from './discovery.ts'
import { directoryOf } from './tailed-file.ts'

interface Folder {
  files: readonly FoundFile[]
  watched: boolean
  busy: boolean
  readonly views: Set<View>
}

interface View {
  readonly rules: DiscoveryRules
  readonly hooks: DiscoveryHooks
  started: boolean
}

/** Each tailer requests these at its own beat; they run once for all tailers. */
const shortestBeatMs = 900
const shortestSweepMs = 30_000

export class SharedDiscovery {
  readonly #root: string
  readonly #base: Discovery
  /** In the order of entry, so that a folder follows its parent. */
  readonly #folders = new Map<string, Folder>()
  readonly #views = new Set<View>()
  /** The view that is deciding whether to enter a folder; all views if undefined. */
  #asking: View | undefined
  #lastBeat = Number.NEGATIVE_INFINITY
  #lastSweep = Number.NEGATIVE_INFINITY

  constructor(root: string) {
    this.#root = root
    this.#base = new Discovery(
      { roots: [root], enter: (directory) => this.#enter(directory), accept: () => true },
      {
        listed: (directory, files, watched) => this.#listed(directory, files, watched),
        left: (directory) => this.#folders.delete(directory),
        changed: (path) => {
          for (const view of this.#viewsOf(directoryOf(path))) view.hooks.changed(path)
        },
        busy: (directory, busy) => {
          const folder = this.#folders.get(directory)
          if (folder !== undefined) folder.busy = busy
          for (const view of this.#viewsOf(directory)) view.hooks.busy(directory, busy)
        },
        failed: (what, path, error) => {
          for (const view of this.#folders.get(path)?.views ?? this.#views) view.hooks.failed(what, path, error)
        },
      },
    )
  }

  /** One tailer's view of the discovery: its rules decide which files it receives. */
  open(rules: DiscoveryRules, hooks: DiscoveryHooks): Finder {
    const view: View = { rules, hooks, started: false }
    this.#views.add(view)
    return {
      sweep: () => this.#sweep(view),
      beat: (now) => {
        if (performance.now() - this.#lastBeat < shortestBeatMs) return
        this.#lastBeat = performance.now()
        this.#base.beat(now)
      },
      reconsider: (directory) => this.#reconsider(view, directory),
      rescan: (directory) => this.#base.rescan(directory),
      look: (directory) => this.#base.look(directory),
      leave: (directory) => this.#leave(view, directory),
      close: () => this.#close(view),
    }
  }

  /** Stops watching all folders. */
  close(): void {
    this.#base.close()
    this.#folders.clear()
    this.#views.clear()
  }

  #viewsOf(directory: string): Iterable<View> {
    const folder = this.#folders.get(directory)
    return folder === undefined ? [] : folder.views
  }

  #wants(view: View, directory: string): boolean {
    const parent = directoryOf(directory)
    return (parent === this.#root || this.#folders.get(parent)?.views.has(view) === true) && view.rules.enter(directory)
  }

  #enter(directory: string): boolean {
    if (this.#asking !== undefined && !this.#wants(this.#asking, directory)) return false
    const views = new Set<View>()
    for (const view of this.#views) if (view.started && this.#wants(view, directory)) views.add(view)
    if (views.size === 0) return false
    this.#folders.set(directory, { files: [], watched: false, busy: false, views })
    return true
  }

  #listed(directory: string, files: readonly FoundFile[], watched: boolean): void {
    if (directory === this.#root) return // files beside the pod folders have no reader
    const folder = this.#folders.get(directory)
    if (folder === undefined) return
    folder.files = files
    folder.watched = watched
    for (const view of folder.views) notify(view, directory, folder)
  }

  #sweep(view: View): void {
    if (view.started) {
      if (performance.now() - this.#lastSweep < shortestSweepMs) return
      this.#lastSweep = performance.now()
      this.#base.sweep()
      return
    }
    view.started = true
    this.#join(view, [...this.#folders.keys()])
    // Enters folders that no walk has visited yet.
    this.#asking = view
    if (this.#lastSweep === Number.NEGATIVE_INFINITY) {
      this.#lastSweep = performance.now()
      this.#base.sweep()
    } else this.#base.rescan(this.#root)
    this.#asking = undefined
  }

  #reconsider(view: View, directory: string | undefined): void {
    if (!view.started) return
    const below = directory === undefined ? undefined : `${directory}/`
    const folders = [...this.#folders.keys()]
    this.#join(
      view,
      below === undefined ? folders : folders.filter((name) => name === directory || name.startsWith(below)),
    )
    // Container folders that only this view wants are unknown so far.
    if (directory !== undefined && this.#folders.get(directory)?.views.has(view)) this.#base.rescan(directory)
    else this.#base.reconsider()
  }

  /** Adds a view to known folders that its rules want. */
  #join(view: View, directories: readonly string[]): void {
    for (const directory of directories) {
      const folder = this.#folders.get(directory)
      if (folder === undefined || folder.views.has(view) || !this.#wants(view, directory)) continue
      folder.views.add(view)
      if (folder.busy) view.hooks.busy(directory, true)
      notify(view, directory, folder)
    }
  }

  #leave(view: View, directory: string): void {
    for (const [name, folder] of [...this.#folders].reverse()) {
      if (name !== directory && !name.startsWith(`${directory}/`)) continue
      if (!folder.views.delete(view)) continue
      if (folder.busy) view.hooks.busy(name, false)
      view.hooks.listed(name, [], false)
      if (folder.views.size === 0) this.#base.leave(name)
    }
  }

  #close(view: View): void {
    this.#views.delete(view)
    for (const [name, folder] of [...this.#folders].reverse()) {
      if (folder.views.delete(view) && folder.views.size === 0) this.#base.leave(name)
    }
  }
}

function notify(view: View, directory: string, folder: Folder): void {
  const files = folder.files.filter(({ path }) => view.rules.accept(path))
  view.hooks.listed(directory, files, folder.watched)
}
