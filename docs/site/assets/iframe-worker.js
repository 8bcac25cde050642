// Browsers start no worker for a page that is read from a file. Search runs in one: here in a hidden frame instead.
// (The name is what mkdocs-material's `offline` asks for; nothing else would have it fetch one from a network.)
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      document.body.append(this.frame)
      this.inside = this.frame.contentWindow
      this.waiting = []
      this.inside.postMessage = (data) => setTimeout(() => {
        const event = new MessageEvent("message", { data })
        this.dispatchEvent(event)
        if (this.onmessage) this.onmessage(event)
      })
      this.inside.importScripts = async (...urls) => {
        for (const each of urls) await this.run(each)
      }
      this.run(url).then(() => {
        const early = this.waiting
        this.waiting = null
        for (const data of early) this.postMessage(data)
      })
    }

    run(url) {
      return new Promise((resolve, reject) => {
        const script = this.inside.document.createElement("script")
        script.src = url
        script.onload = resolve
        script.onerror = reject
        this.inside.document.head.append(script)
      })
    }

    postMessage(data) {
      if (this.waiting) this.waiting.push(data)
      else this.inside.dispatchEvent(new this.inside.MessageEvent("message", { data }))
    }

    terminate() {
      this.frame.remove()
    }
  }
}
