// Location of a worker's file: beside the module that starts it, with the same extension. In the image, modules are packed
// into few files in one folder.

export function workerFile(name: string, url: string): URL {
  const ending = /\.ts(?:\?|$)/.test(url) ? '.ts' : '.js'
  return new URL(`./${name}${ending}`, url)
}
