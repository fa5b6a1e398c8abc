// The documentation site: the Markdown files of the repository in their folders, with a local search. `npm run docs` builds it, and fails
// on broken links. The README of the guide is its table of contents, as in the repository.

import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type DefaultTheme, defineConfig } from 'vitepress'

const root = join(import.meta.dirname, '../..')
const guide = 'operator/guide'

/** Two pipes that meet, embedded in the page. */
const icon = `data:image/svg+xml,${encodeURIComponent(
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><path d="M4 8h10v16h14M14 16h14" fill="none" stroke="#2b6cb0" stroke-width="5"/></svg>',
)}`

/** Every page contains the sidebar, so a longer group becomes a single link. */
const maxItems = 30

/** Sections of a README with the links in their lists and tables, as groups of the sidebar. */
function contents(folder: string): DefaultTheme.SidebarItem[] {
  const page = readFileSync(join(root, folder, 'README.md'), 'utf8')
  const sections = page.split(/^## /m).slice(1)
  return sections.map((section) => {
    const text = section.slice(0, section.indexOf('\n'))
    const items = [...section.matchAll(/^(?:\||-) \[([^\]]+)\]\(([^)]+)\.md\)/gm)].map(([, name = '', path = '']) => ({
      text: name.replaceAll('`', ''),
      link: join('/', folder, path).replace(/README$/, ''),
    }))
    const anchor = text.toLowerCase().replaceAll(' ', '-')
    return items.length > maxItems
      ? { text, link: `/${folder}/#${anchor}` }
      : { text, collapsed: folder !== guide, items }
  })
}

const reference: DefaultTheme.SidebarItem[] = [
  { text: 'Resources', link: '/operator/reference/' },
  ...contents('agent/reference'),
]

/** Markdown files that are not pages, but texts for tests. */
const excluded = ['**/node_modules/**', '**/src/testing/**', '**/src/schema/testdata/**']

const isPage = (path: string) =>
  path.endsWith('.md') && !/\/src\/(?:testing|schema\/testdata)\/|(?:^|\/)\.ci\//.test(path)

const kinds = ['sources', 'transforms', 'sinks']

/** The search words for the page of each component: its type, other names, and products. */
function namesOfComponents(): Record<string, string[]> {
  const names: Record<string, string[]> = {}
  for (const kind of kinds) {
    for (const file of readdirSync(join(root, 'agent/reference', kind))) {
      const text = readFileSync(join(root, 'agent/reference', kind, file), 'utf8')
      const lines = text.match(/^(?:# |- Works with |- Also accepted as ).*$/gm) ?? []
      const words =
        lines
          .join(' ')
          .replace(/Works with|Also accepted as/g, '')
          .match(/\w+/g) ?? []
      names[`${kind}/${file.replace('.md', '')}`] = [...new Set(words.map((word) => word.toLowerCase()))]
    }
  }
  return names
}

/**
 * The weight of a section in the search. A search for the name of a product shows its sink before options of other agents, and the guide
 * precedes pages for developers. The browser gets the text of this function, so it contains the names and refers to nothing outside.
 */
const weightOf = new Function(
  'id',
  'term',
  `const names = ${JSON.stringify(namesOfComponents())}
  const [path = '', anchor = ''] = id.split('#')
  const [, page, name] = /\\/agent\\/reference\\/(\\w+\\/(\\w+))$/.exec(path.replace(/\\.(?:md|html)$/, '')) ?? []
  const isTop = anchor.replaceAll('-', '_').toLowerCase() === name
  if (isTop && names[page]?.includes(term.toLowerCase())) return 20
  if (/\\/(?:ARCHITECTURE|CHANGELOG|CONTRIBUTING|FIGURES)\\b|\\/e2e\\/|\\/src\\//.test(path)) return 0.3
  return /\\/guide\\/(?:alloy|filebeat|fluent-bit|fluentd|otel|promtail|vector)\\b/.test(path) ? 0.2 : 1`,
) as (id: string, term: string) => number

export default defineConfig({
  title: 'Penstock',
  description: 'Collects, transforms and delivers logs and metrics on Kubernetes',
  srcDir: root,
  srcExclude: excluded,
  rewrites: (id) => id.replace(/(^|\/)README\.md$/, '$1index.md'),
  cleanUrls: true,
  head: [['link', { rel: 'icon', href: icon }]],
  markdown: {
    config(markdown) {
      // Show templates of Penstock as text: Vue would evaluate `{{`.
      for (const rule of ['text', 'code_inline'] as const) {
        const render = markdown.renderer.rules[rule]
        if (render === undefined) throw new Error(`The renderer has no rule ${rule}.`)
        markdown.renderer.rules[rule] = (...given) => render(...given).replaceAll('{{', '&#123;&#123;')
      }
      markdown.core.ruler.push('links to files', ({ tokens, env }) => {
        const folder = join('/', env.relativePath as string, '..')
        for (const link of tokens.flatMap(({ children }) => children ?? [])) {
          const href = link.type === 'link_open' ? (link.attrGet('href') ?? '') : ''
          if (href === '' || /^(?:[a-z]+:|#)/.test(href)) continue
          const [path = '', anchor = ''] = href.split(/(?=#)/)
          const target = join(folder, decodeURI(path))
          if (isPage(target)) link.attrSet('href', path.replace(/(^|\/)README\.md$/, '$1index.md') + anchor)
          // A file that is not a page has no address, so its link leads to the page itself.
          else if (existsSync(join(root, target))) link.attrSet('href', '#')
        }
      })
    },
  },
  themeConfig: {
    search: { provider: 'local', options: { miniSearch: { searchOptions: { boostDocument: weightOf } } } },
    outline: [2, 3],
    nav: [
      { text: 'Guide', link: '/operator/guide/' },
      { text: 'Examples', link: '/examples/' },
      { text: 'Reference', link: '/agent/reference/' },
      { text: 'Contributing', link: '/CONTRIBUTING' },
    ],
    sidebar: {
      '/agent/reference/': reference,
      '/operator/reference/': reference,
      '/': contents(guide),
    },
  },
})
